// Peer: mark3labs/mcp-go over ServeStdio.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os/exec"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func echo(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := request.RequireString("text")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(text), nil
}

func add(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a, err := request.RequireInt("a")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	b, err := request.RequireInt("b")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(strconv.Itoa(a + b)), nil
}

func payload(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	object, found := request.GetArguments()["object"].(map[string]any)
	if !found {
		return mcp.NewToolResultError("object: expected an object"), nil
	}
	written, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultStructured(object, string(written)), nil
}

func sleep(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	milliseconds, err := request.RequireInt("ms")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	select {
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return mcp.NewToolResultText("done"), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A failed command is not a failed call: what it printed is the answer.
func bash(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	command, err := request.RequireString("command")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	printed, _ := exec.CommandContext(ctx, "bash", "-c", command).CombinedOutput()
	return mcp.NewToolResultText(string(printed)), nil
}

func main() {
	bench := server.NewMCPServer("bench", "1.0.0", server.WithToolCapabilities(false))
	bench.AddTool(mcp.NewTool("echo", mcp.WithDescription("Return the text."),
		mcp.WithString("text", mcp.Required())), echo)
	bench.AddTool(mcp.NewTool("add", mcp.WithDescription("Return the sum of two integers."),
		mcp.WithInteger("a", mcp.Required()), mcp.WithInteger("b", mcp.Required())), add)
	bench.AddTool(mcp.NewTool("payload", mcp.WithDescription("Return the object."),
		mcp.WithObject("object", mcp.Required())), payload)
	bench.AddTool(mcp.NewTool("sleep", mcp.WithDescription("Wait for so many milliseconds."),
		mcp.WithInteger("ms", mcp.Required())), sleep)
	bench.AddTool(mcp.NewTool("bash", mcp.WithDescription("Run a command and return what it printed."),
		mcp.WithString("command", mcp.Required())), bash)
	if err := server.ServeStdio(bench); err != nil {
		log.Fatal(err)
	}
}
