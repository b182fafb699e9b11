package report

import (
	"math"
	"slices"
	"testing"
)

func TestSum(t *testing.T) {
	for _, test := range []struct{ values, want []float64 }{
		{[]float64{5, 1, 3, 2, 4}, []float64{3, 1, 5}},
		{[]float64{7}, []float64{7, 7, 7}},
		{[]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 10}, []float64{5.5, 2, 8}}, // the least and the greatest of ten say little
	} {
		if s := Sum(test.values); !slices.Equal([]float64{s.Median, s.Lo, s.Hi}, test.want) {
			t.Errorf("%v: %+v, want %v", test.values, s, test.want)
		}
	}
	if c := Sum(nil).Cells("%.0f"); !math.IsNaN(Sum(nil).Median) || !slices.Equal(c, []string{"-", "-"}) {
		t.Error("a figure that was not measured is", c)
	}
}

// A block needs a place with an end. TestPages of bench fills pages.
func TestFill_wrongPage(t *testing.T) {
	for _, page := range []string{"<!-- figures: x -->\n<!-- end of figures -->\n", "<!-- figures: z -->\n"} {
		if _, err := Fill(page, map[string]string{"z": "3\n"}); err == nil {
			t.Errorf("no error for %q", page)
		}
	}
}
