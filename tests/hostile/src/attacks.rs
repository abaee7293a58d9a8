//! The list.

mod calls;
mod files;
mod places;
mod processes;
mod services;

use crate::Attack;

/// Every attack, in the order of the attack list.
pub fn all() -> Vec<Attack> {
    let mut all = [processes::ATTACKS, files::ATTACKS, places::ATTACKS, services::ATTACKS, calls::ATTACKS].concat();
    all.sort_by_key(|attack| attack.id);
    all
}
