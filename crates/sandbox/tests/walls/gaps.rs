//! What a world does not hold, and why. A test on a list must fail there, and no other may: so a gap
//! that is closed has to leave its list, which only shrinks.

use crate::world::World;

type Gap = (&'static str, &'static str);

pub(crate) fn of(world: World) -> &'static [Gap] {
    match world {
        World::Bubblewrap => BUBBLEWRAP,
        World::Landlock | World::LandlockUser => LANDLOCK,
        World::Root | World::User | World::NoCgroups => &[],
    }
}

/// Whether exactly the gaps have failed; of those, only the ones that were tried.
pub(crate) fn are_all(world: World, failed: &[&str], all: bool) -> bool {
    let is_gap = |name: &str| of(world).iter().any(|(own, _)| *own == name);
    let unexpected: Vec<_> = failed.iter().filter(|name| !is_gap(name)).collect();
    let held: Vec<_> =
        of(world).iter().map(|(own, _)| own).filter(|own| all && !failed.contains(*own)).collect();
    println!("{world}: failed and should not: {unexpected:?}; held and not named: {held:?}\n");
    unexpected.is_empty() && held.is_empty()
}

/// The lower tier: Landlock and seccomp alone.
const LANDLOCK: &[Gap] = &[
    ("only_the_view_is_seen", "whether a path exists can be seen, though nothing of it be read"),
    ("the_root_has_nothing_else", "the root is the host's; it cannot be listed"),
    ("links_lead_nowhere", "they lead to where they lead, and nothing can be read there"),
    ("proc_shows_only_the_call", "there is no `/proc` at all"),
    ("masks_hide_everything_but_the_name", "names, sizes and dates of what is hidden can be seen"),
    ("tmp_is_private_to_a_run", "it is named by `TMPDIR`; there is no `/dev/shm`, no `/var/tmp`"),
    ("other_processes_are_out_of_reach", "that they are there can be seen; no signal reaches them"),
    ("no_privilege_is_left", "it is looked at through `/proc`"),
    ("setuid_programs_gain_nothing", "they have their bits, which gain nothing"),
    ("a_command_has_three_descriptors", "it is looked at through `/proc`"),
    ("there_is_no_terminal", "its name is there, and cannot be opened"),
    ("signals_are_as_in_a_fresh_process", "it is looked at through `/proc`"),
    ("tmp_is_bounded", "its size is added up from outside, and whoever exceeds it is ended"),
    ("ordinary_programs_work", "permissions and dates cannot be set, and semaphores not be made"),
];

/// Bubblewrap as its users set it up.
const BUBBLEWRAP: &[(&str, &str)] = &[
    ("only_the_view_is_seen", "its `/dev` has terminals and consoles"),
    ("the_root_has_nothing_else", "its `/dev` has terminals and consoles"),
    ("links_lead_nowhere", "a link through `/proc` is followed, and leads to its own root"),
    ("proc_shows_only_the_call", "its `/proc` shows the kernel's settings and symbols"),
    ("masks_hide_everything_but_the_name", "what covers a path can be opened and listed"),
    ("masks_follow_no_link", "what covers a link covers what it leads to"),
    ("the_system_is_read_only", "its root and its `/etc` are in memory, and can be written to"),
    ("pipes_of_the_host_are_not_written", "a read-only mount holds no pipe"),
    ("tmp_is_private_to_a_run", "there is one more `/dev/shm`, and no `/var/tmp`"),
    ("sockets_in_the_workspace_are_not_reached", "nothing judges whom a local socket reaches"),
    ("other_families_cannot_be_made", "it has no filter on system calls of its own"),
    ("other_processes_are_out_of_reach", "its first process can be traced"),
    ("the_first_process_keeps_what_it_has", "it has no filter on system calls of its own"),
    ("walls_cannot_be_taken_down", "it has no filter on system calls of its own"),
    ("no_privilege_is_left", "it has no filter on system calls of its own"),
    ("a_command_has_three_descriptors", "it passes on what it inherits"),
    ("there_is_no_terminal", "the name of the terminal is there"),
    ("signals_are_as_in_a_fresh_process", "it passes on what is ignored"),
];
