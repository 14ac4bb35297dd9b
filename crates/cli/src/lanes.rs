//! Wires each class of the configuration to its transport.

use crate::settings;
use anyhow::Context;
use paceline_core::config::{Auth, Class, Config};
use paceline_store::ClassRef;
use paceline_transport::{Credential, HttpTransport};
use paceline_worker::Lane;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One lane per class. Classes that share a credential share its connections.
pub(crate) fn build(config: &Config) -> anyhow::Result<Vec<Lane>> {
    let mut transports = BTreeMap::new();
    for (name, credential) in &config.credentials {
        let secret = resolve(&credential.auth).with_context(|| format!("credential.{name}.secret"))?;
        let provider = &config.providers[&credential.provider];
        let transport = HttpTransport::new(provider, secret).with_context(|| format!("credential.{name}"))?;
        transports.insert(name, Arc::new(transport));
    }
    Ok(config
        .classes
        .values()
        .map(|class| lane(config, class, transports[&class.credential].clone()))
        .collect())
}

fn lane(config: &Config, class: &Class, transport: Arc<HttpTransport>) -> Lane {
    Lane {
        at: ClassRef::of(config, class),
        rules: config.provider_of(class).rules.clone(),
        lease_ms: config.lease_ms(class),
        class: class.clone(),
        transport,
    }
}

fn resolve(auth: &Auth) -> anyhow::Result<Credential> {
    Ok(match auth {
        Auth::None => Credential::None,
        Auth::Bearer(secret) => Credential::Bearer(settings::secret(secret)?),
        Auth::Basic { user, secret } => {
            Credential::Basic { user: user.clone(), secret: settings::secret(secret)? }
        }
        Auth::Header { name, secret } => {
            Credential::Header { name: name.clone(), secret: settings::secret(secret)? }
        }
        Auth::Query { name, secret } => {
            Credential::Query { name: name.clone(), secret: settings::secret(secret)? }
        }
    })
}
