//! The send id: what the provider gets as idempotency key on every attempt.

use crate::{JobKey, Name};
use uuid::Uuid;

/// UUIDv5 of (deployment id, class, key, revision): the same for every attempt of a job, different for
/// the same key in another class, another deployment, or after a person edited the payload.
pub fn send_id(deployment_id: Uuid, class: &Name, key: &JobKey, revision: u8) -> Uuid {
    // A class holds no blank and the revision comes first, so no two tuples spell the same text.
    let tuple = format!("{revision} {class} {key}");
    Uuid::new_v5(&deployment_id, tuple.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_stable_and_scoped() {
        let (deployment, bulk) = (Uuid::from_u128(7), Name::new("bulk").unwrap());
        let key = JobKey::new("welcome:42").unwrap();
        let id = send_id(deployment, &bulk, &key, 0);
        assert_eq!(id.to_string(), "eaf26390-26d2-5349-8f4f-8e3530ce596d");
        assert_ne!(id, send_id(Uuid::from_u128(8), &bulk, &key, 0));
        assert_ne!(id, send_id(deployment, &Name::new("lifecycle").unwrap(), &key, 0));
        assert_ne!(id, send_id(deployment, &bulk, &key, 1));
    }

    proptest! {
        #[test]
        fn different_keys_never_share_an_id(a in "[ -~]{1,20}", b in "[ -~]{1,20}") {
            let (bulk, deployment) = (Name::new("bulk").unwrap(), Uuid::from_u128(7));
            let id = |key: &str| send_id(deployment, &bulk, &JobKey::new(key).unwrap(), 0);
            prop_assert_eq!(a == b, id(&a) == id(&b));
        }
    }
}
