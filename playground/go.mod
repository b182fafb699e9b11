module gothrottle/playground

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/stretchr/testify v1.12.1
	gothrottle v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260623181947-01eb4420fa68 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace gothrottle => ..
