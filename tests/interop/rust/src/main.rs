// The calculator of rmcp's own package (tests/common/calculator.rs, put beside this by the build, with the
// attribute that has its tools called), started as the SDK's documents say: over stdio, or over Streamable HTTP at
// the address that is given.

mod calculator;

use calculator::Calculator;
use rmcp::{
    ServiceExt,
    transport::{
        StreamableHttpServerConfig, stdio,
        streamable_http_server::{
            session::local::LocalSessionManager, tower::StreamableHttpService,
        },
    },
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(address) = std::env::args().nth(1) else {
        Calculator::new().serve(stdio()).await?.waiting().await?;
        return Ok(());
    };
    let service: StreamableHttpService<Calculator, LocalSessionManager> = StreamableHttpService::new(
        || Ok(Calculator::new()),
        Default::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(&address).await?;
    eprintln!("serving at {}", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
