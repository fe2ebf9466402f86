//! Peer: the official Rust SDK, over `stdio()` as its README shows, or with `--pipes` over `stdio_pipes()`.
//!
//! The router is made once and kept: the shortest form of the macros makes it anew for every call.

use std::process::Stdio;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::transport::{stdio, stdio_pipes};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Payload {
    object: Map<String, Value>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Bash {
    command: String,
}

#[derive(Clone)]
struct Bench {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Bench {
    #[tool(description = "Return the text.")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Return the sum of two integers.")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        a.wrapping_add(b).to_string()
    }

    #[tool(description = "Return the object.")]
    fn payload(&self, Parameters(Payload { object }): Parameters<Payload>) -> CallToolResult {
        CallToolResult::structured(Value::Object(object))
    }

    #[tool(description = "Wait for so many milliseconds.")]
    async fn sleep(&self, Parameters(Sleep { ms }): Parameters<Sleep>) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "done".into()
    }

    #[tool(description = "Run a command and return what it printed.")]
    async fn bash(&self, Parameters(Bash { command }): Parameters<Bash>) -> Result<String, String> {
        let mut shell = tokio::process::Command::new("bash");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        let output = shell
            .output()
            .await
            .map_err(|problem| problem.to_string())?;
        let printed = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Bench {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bench = Bench {
        tool_router: Bench::tool_router(),
    };
    if std::env::args().any(|argument| argument == "--pipes") {
        bench.serve(stdio_pipes()).await?.waiting().await?;
    } else {
        bench.serve(stdio()).await?.waiting().await?;
    }
    Ok(())
}
