//! The classes and budgets of the configuration, as the routes look them up.

use crate::AppState;
use crate::problem::Problem;
use paceline_core::config::Class;
use paceline_store::{BudgetRef, ClassRef, Store, StoreError};
use std::collections::BTreeMap;
use std::ops::Deref;
use url::Url;

/// A class of the configuration.
pub(crate) struct Known {
    pub(crate) config: Class,
    pub(crate) at: ClassRef,
    /// The provider's address, which a job's path must not leave.
    pub(crate) base_url: Url,
}

impl Known {
    pub(crate) fn name(&self) -> &str {
        self.config.name.as_str()
    }
}

/// What every route sees.
pub(crate) struct App {
    state: AppState,
    classes: BTreeMap<String, Known>,
}

impl Deref for App {
    type Target = AppState;
    fn deref(&self) -> &AppState {
        &self.state
    }
}

impl App {
    pub(crate) fn new(state: AppState) -> Self {
        let known = |class: &Class| Known {
            at: ClassRef::of(&state.config, class),
            base_url: state.config.provider_of(class).base_url.clone(),
            config: class.clone(),
        };
        let classes = state.config.classes.values().map(|class| (class.name.to_string(), known(class)));
        Self { classes: classes.collect(), state }
    }

    /// The class of that name, where there is one.
    pub(crate) fn find(&self, class: &str) -> Option<&Known> {
        self.classes.get(class)
    }

    /// The class of that name, or 404.
    pub(crate) fn class(&self, class: &str) -> Result<&Known, Problem> {
        self.find(class).ok_or_else(|| Problem::missing("class", "there is no such class"))
    }

    /// Every class.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Known> {
        self.classes.values()
    }

    /// Every class, or the one that is asked for.
    pub(crate) fn classes(&self, only: Option<&str>) -> Result<Vec<&Known>, Problem> {
        match only {
            Some(class) => Ok(vec![self.class(class)?]),
            None => Ok(self.known().collect()),
        }
    }

    /// A budget and a class that spends from it: a budget lives in that class's group.
    pub(crate) fn budget(&self, budget: &str) -> Result<(&Known, &BudgetRef), Problem> {
        self.classes
            .values()
            .find_map(|known| {
                let spent = known.at.budgets.iter().find(|spent| spent.name.as_str() == budget)?;
                Some((known, spent))
            })
            .ok_or_else(|| Problem::missing("name", "no class spends from a budget of that name"))
    }

    /// Runs `call`; a class that Redis does not know (its data was lost, or no worker has started yet) is
    /// declared, and the call repeated once.
    pub(crate) async fn declared<T, F>(&self, known: &Known, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        match call().await {
            Err(StoreError::UnknownClass | StoreError::Undeclared) => {
                self.store.declare(&known.at).await?;
                call().await
            }
            answer => answer,
        }
    }
}
