//! The API on a listener, with a state that may be replaced while it is served.

use crate::{AppState, app, edge};
use axum::Router;
use axum::extract::Request;
use std::future::Future;
use std::sync::{Arc, RwLock};
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

/// The API. Cheap to clone; clones share the state.
#[derive(Clone)]
pub struct Api {
    routes: Arc<RwLock<Router>>,
}

impl Api {
    /// With the state it begins with.
    pub fn new(state: AppState) -> Self {
        Self { routes: Arc::new(RwLock::new(app(state))) }
    }

    /// Requests from here on are answered by this one: other tokens, other classes.
    pub fn replace(&self, state: AppState) {
        *self.routes.write().expect("no holder panics") = app(state);
    }

    fn now(&self) -> Router {
        self.routes.read().expect("no holder panics").clone()
    }

    /// Serves until `shutdown` completes and the requests under way have ended. No request outlives its time
    /// limit, so neither does the wait for a client that never finishes its own.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let routes = service_fn(move |request: Request| self.now().oneshot(request));
        let server = axum::serve(listener, Router::new().fallback_service(routes)).with_graceful_shutdown(
            async move {
                shutdown.await;
                // Nobody listens any more only if the server has ended by itself.
                let _ = stopping.send(());
            },
        );
        let overdue = async {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(edge::REQUEST_TIMEOUT).await;
        };
        tokio::select! {
            ended = server => ended,
            () = overdue => Ok(()),
        }
    }
}

/// Serves the API with one state for good.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    Api::new(state).serve(listener, shutdown).await
}
