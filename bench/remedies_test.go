package main

import "testing"

func TestX(t *testing.T) { t.Log("\n" + plain(remedyTable())) }
