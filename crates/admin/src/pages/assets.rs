//! Script, style and icon, from the binary. Their names hold a hash of their content, so they may be kept for ever.

use super::fault::Fault;
use crate::problem::Problem;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// A file that ships in the binary.
pub(super) struct Asset {
    /// Where it is asked for.
    pub(super) path: String,
    media_type: &'static str,
    content: &'static str,
}

pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("paceline", "css", "text/css", include_str!("assets/paceline.css")));
pub(super) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("paceline", "js", "text/javascript", include_str!("assets/paceline.js")));
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")));

impl Asset {
    fn new(name: &str, ending: &str, media_type: &'static str, content: &'static str) -> Self {
        let path = format!("/assets/{name}-{}.{ending}", hash(content.as_bytes()));
        Self { path, media_type, content }
    }
}

/// Short, and of the content alone.
pub(super) fn hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    URL_SAFE_NO_PAD.encode(&digest[..12])
}

/// `GET /assets/{file}`: by its full name only. An old name is not answered with new content.
pub(super) async fn serve(Path(file): Path<String>) -> Result<Response, Fault> {
    let asked = format!("/assets/{file}");
    let asset = [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.path == asked);
    let asset = asset.ok_or_else(|| Problem::missing("file", "there is no such file"))?;
    let headers = [
        (header::CONTENT_TYPE, format!("{}; charset=utf-8", asset.media_type)),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable".to_owned()),
    ];
    Ok((headers, asset.content).into_response())
}
