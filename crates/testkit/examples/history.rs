//! scratch
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n = |i: usize| a[i].parse().unwrap();
    capsule_testkit::History {
        runs: n(2),
        calls: n(3),
        name: "x".repeat(n(4) as usize),
        output: n(5) as usize,
    }
    .write(std::path::Path::new(&a[1]));
}
