//! The rows of a table, tried side by side.

use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex};
use std::thread::{available_parallelism, scope};

/// How many rows are being tried, of all tables of this process together.
static RUNNING: Mutex<usize> = Mutex::new(0);
/// Somebody is through with a row.
static FREED: Condvar = Condvar::new();

/// A place at a processor, until it is dropped.
struct ProcessorSlot;

impl ProcessorSlot {
    /// Waits for one of so many.
    fn wait(count: usize) -> Self {
        let mut busy = FREED.wait_while(RUNNING.lock().unwrap(), |busy| *busy >= count).unwrap();
        *busy += 1;
        Self
    }
}

impl Drop for ProcessorSlot {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap() -= 1;
        FREED.notify_one();
    }
}

/// Does the same with every row, and gives what came of each in the order of the rows. As many rows are
/// tried at once as there are processors, those of other tables in this process counted with them. For
/// rows that have nothing to do with each other, in a test that would otherwise go through them alone
/// while the other processors wait for it. A row has no table of its own.
///
/// # Panics
/// When it panics for a row, with what that said, once the others are through.
pub fn run_in_parallel<R: Send, T: Send>(
    rows: impl IntoIterator<Item = R, IntoIter: Send>,
    each: impl Fn(R) -> T + Sync,
) -> Vec<T> {
    let waiting = Mutex::new(rows.into_iter().enumerate());
    // By itself: the lock is not held while a row is tried.
    let next = || waiting.lock().unwrap().next();
    let count = available_parallelism().map_or(1, usize::from);
    let worker = || {
        let mut done = Vec::new();
        while let Some((index, row)) = next() {
            let _place = ProcessorSlot::wait(count);
            done.push((index, each(row)));
        }
        done
    };
    let mut done: Vec<(usize, T)> = scope(|scope| {
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|one| one.join());
        ended.flat_map(|one| one.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, came)| came).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_tried_once_and_answers_stay_in_order() {
        assert_eq!(run_in_parallel(0..100, |row| row * 2), (0..200).step_by(2).collect::<Vec<_>>());
        assert_eq!(run_in_parallel(Vec::<u8>::new(), |row| row), [0_u8; 0]);
    }

    #[test]
    #[should_panic(expected = "the third row")]
    fn a_row_that_fails_fails_the_test() {
        let _ = run_in_parallel(0..8, |row| assert!(row != 2, "the third row"));
    }
}
