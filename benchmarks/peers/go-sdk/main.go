// Peer: the official Go SDK over its StdioTransport.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os/exec"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echoInput struct {
	Text string `json:"text"`
}

type addInput struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

type payloadInput struct {
	Object map[string]any `json:"object"`
}

type sleepInput struct {
	Milliseconds int64 `json:"ms"`
}

type bashInput struct {
	Command string `json:"command"`
}

func text(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: value}}}
}

func echo(_ context.Context, _ *mcp.CallToolRequest, input echoInput) (*mcp.CallToolResult, any, error) {
	return text(input.Text), nil, nil
}

func add(_ context.Context, _ *mcp.CallToolRequest, input addInput) (*mcp.CallToolResult, any, error) {
	return text(strconv.FormatInt(input.A+input.B, 10)), nil, nil
}

func payload(_ context.Context, _ *mcp.CallToolRequest, input payloadInput) (*mcp.CallToolResult, any, error) {
	written, err := json.Marshal(input.Object)
	if err != nil {
		return nil, nil, err
	}
	result := text(string(written))
	result.StructuredContent = input.Object
	return result, nil, nil
}

func sleep(ctx context.Context, _ *mcp.CallToolRequest, input sleepInput) (*mcp.CallToolResult, any, error) {
	select {
	case <-time.After(time.Duration(input.Milliseconds) * time.Millisecond):
		return text("done"), nil, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// A failed command is not a failed call: what it printed is the answer.
func bash(ctx context.Context, _ *mcp.CallToolRequest, input bashInput) (*mcp.CallToolResult, any, error) {
	printed, _ := exec.CommandContext(ctx, "bash", "-c", input.Command).CombinedOutput()
	return text(string(printed)), nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "v1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Return the text."}, echo)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Return the sum of two integers."}, add)
	mcp.AddTool(server, &mcp.Tool{Name: "payload", Description: "Return the object."}, payload)
	mcp.AddTool(server, &mcp.Tool{Name: "sleep", Description: "Wait for so many milliseconds."}, sleep)
	mcp.AddTool(server, &mcp.Tool{Name: "bash", Description: "Run a command and return what it printed."}, bash)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
