//! Which blanks of a line an edit may take for others, by the kind of the file: whole files are compared, byte by byte.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use capsule_tools::edit::{EditError, EditRequest, edit};
use proptest::prelude::*;

/// The file's name, what is before the place, the place, what is behind it, and what is searched for.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

const FOUND: &[Row] = &[
    ("a.py", "import a\n", "x = a+b\n", "y = 1\n", "x = a + b\n"),
    ("a.py", "", "x=a+b\n", "", "x = a + b\n"),
    ("a.py", "", "x= 1\n", "", "x = 1\n"),
    ("a.py", "", "def f(a,  b) :\n", "    pass\n", "def f(a, b):\n"),
    ("a.py", "", "x = {  'a': 1 }\n", "", "x = {'a' : 1}\n"),
    ("a.py", "s = '''\nit's\n'''\n", "f( 1,2 )\n", "", "f(1, 2)\n"),
    ("a.py", "s = \"\"\"a \\\"\"\" b\n\"\"\"\n", "f(1,2)\n", "", "f(1, 2)\n"),
    ("a.py", "def f():\n    '''Says  it.'''\n", "    return a[1 :2]\n", "", "    return a[1:2]\n"),
    ("a.py", "", "x = 1  # the  first\n", "", "x = 1 # the first\n"),
    ("a.py", "", "print(\"a  b\" , c)\n", "", "print(\"a  b\", c)\n"),
    ("a.py", "", "x = y if z  else -1\n", "", "x = y if z else -1\n"),
    ("a.py", "", "x=-1\n", "", "x = -1\n"),
    ("a.rs", "", "let x = a+b;\n", "", "let x = a + b;\n"),
    (
        "a.rs",
        "let s = r#\"a \"  b\"#;\n",
        "fn f<'a>(x:&'a str) {\n",
        "}\n",
        "fn f<'a>(x: &'a str) {\n",
    ),
    ("a.rs", "let c = '\"';\n", "f(a , b);\n", "", "f(a, b);\n"),
    ("a.rs", "let c = '\\'';\n/* a /* b */ \" */\n", "f(a , b);\n", "", "f(a, b);\n"),
    ("a.c", "", "if (a<b && c) {\n", "}\n", "if (a < b && c) {\n"),
    ("a.c", "// don't\n", "for(i=0;i<n;i++){\n", "}\n", "for (i = 0; i < n; i++) {\n"),
    ("a.c", "char *s = \"/*\";\n", "int *p=&x;\n", "", "int *p = &x;\n"),
    ("a.c", "", "char** p;\n", "", "char **p;\n"),
    ("a.c", "", "#define  F(x)  (x)\n", "", "#define F(x) (x)\n"),
    ("a.c", "int x = 1'000;\n", "f( x );\n", "", "f(x);\n"),
    ("a.cpp", "auto s = R\"x(a )\" b)x\";\n", "f( x );\n", "", "f(x);\n"),
    ("a.java", "", "String s=\"a  b\"+c;\n", "", "String s = \"a  b\" + c;\n"),
    ("A.cs", "var p = @\"c:\\\";\n", "f( x );\n", "", "f(x);\n"),
    ("a.go", "s := `it's \"\nb`\n", "x:=f( a,b )\n", "", "x := f(a, b)\n"),
    ("a.js", "", "if(x===1){\n", "}\n", "if (x === 1) {\n"),
    ("a.js", "const s = `a ${f(`b`)} \"`;\n", "let x=a+b;\n", "", "let x = a + b;\n"),
    ("a.js", "const r = /[\"']/;\n", "let x=a/b;\n", "", "let x = a / b;\n"),
    ("a.ts", "", "const f = (a:number)=>a*2;\n", "", "const f = (a: number) => a * 2;\n"),
    ("a.tsx", "  <p>\n    Don't\n  </p>\n);\n}\n", "f( a );\n", "", "f(a);\n"),
    ("a.tsx", "", "<A  b={1}  c=\"x\"/>\n", "", "<A b={1} c=\"x\" />\n"),
    ("a.json", "{\n", "  \"a\":{\"b\":1},\n", "}\n", "  \"a\": { \"b\": 1 },\n"),
    ("a.toml", "", "name=\"x\"\n", "", "name = \"x\"\n"),
    ("a.php", "<?php\n", "$x=f($a,$b);\n", "", "$x = f($a, $b);\n"),
    (
        "a.sql",
        "-- don't\n",
        "SELECT a,b FROM t WHERE a=1;\n",
        "",
        "SELECT a, b FROM t WHERE a = 1;\n",
    ),
    ("a.lua", "s = [[it's]]\n", "f( a,b )\n", "", "f(a, b)\n"),
    ("a.kt", "", "val x=a+b\n", "", "val x = a + b\n"),
    ("a.swift", "", "let x = a+b\n", "", "let x = a + b\n"),
    ("a.rb", "x = %q(it's)\n", "y = f(a,b)\n", "", "y = f(a, b)\n"),
    ("a.css", "", "  color:red;\n", "", "  color: red;\n"),
    ("a.css", "", ".a,.b{\n", "}\n", ".a, .b {\n"),
    ("a.sh", "cat <<E\nit's\nE\n", "a  -b   c\n", "", "a -b c\n"),
    ("a.sh", "", "if [ -f x ];then\n", "fi\n", "if [ -f x ]; then\n"),
    ("a.yaml", "a: |\n  b  c\n", "d:   e\n", "", "d: e\n"),
    ("a.yml", "on:\n", "  branches: [ main,dev ]\n", "", "  branches: [main, dev]\n"),
    ("a.yml", "", "-   run: x\n", "", "- run: x\n"),
    ("a.md", "```\na  b\n```\n", "Some  words here.\n", "", "Some words here.\n"),
    ("a.md", "", "| a   | b  |\n", "", "| a | b |\n"),
    (
        "a.html",
        "<pre>\na\n</pre>\n",
        "<div  class=\"a  b\" >\n",
        "</div>\n",
        "<div class=\"a  b\">\n",
    ),
    ("a.txt", "", "foo(a,  b);\n", "", "foo(a, b);\n"),
    ("a.txt", "", "if(x==1){\n", "}\n", "if (x == 1) {\n"),
    ("a.txt", "", "a\t=\t1\n", "b = 2\n", "a = 1\n"),
    ("a.txt", "", "let x=a+b;\n", "", "let x = a + b;\n"),
    ("a.txt", "", "if (a<b && c) {\n", "}\n", "if (a < b && c) {\n"),
    ("a", "", "if a  b\n", "", "if a b\n"),
];

const NOT_FOUND: &[Row] = &[
    // Within a text.
    (
        "a.py",
        "HELP = \"\"\"\n",
        "  -a      all\n  -b      both\n\"\"\"\nx = 1\n",
        "",
        "  -a all\n  -b both\n\"\"\"\nx = 1\n",
    ),
    ("a.py", "", "print(\"say \\\"x  y\\\" now\")\n", "", "print(\"say \\\"x y\\\" now\")\n"),
    ("a.py", "", "x = 'a  b'\n", "", "x = 'a b'\n"),
    ("a.py", "", "x = f\"{d[\"a  b\"]}\"\n", "", "x = f\"{d[\"a b\"]}\"\n"),
    ("a.py", "x = 'a \\\n", "b  c'\n", "", "b c'\n"),
    ("a.py", "", "x = r  'a'\n", "", "x = r'a'\n"),
    ("a.py", "x = '''\n", "def f( a ):\n", "'''\n", "def f(a):\n"),
    ("a.js", "const s = `\n", "a    b\n", "`;\n", "a b\n"),
    ("a.js", "const s = `${f(`\n", "a    b\n", "`)} c`;\n", "a b\n"),
    ("a.js", "", "re = /a  b/;\n", "", "re = /a b/;\n"),
    ("a.js", "", "x.split(/ ,  /)\n", "", "x.split(/ , /)\n"),
    ("a.jsx", "", "<p>Hello ,  you</p>\n", "", "<p>Hello, you</p>\n"),
    ("a.jsx", "<p>\n", "Hello ,  you\n", "</p>\n", "Hello, you\n"),
    ("a.go", "s := `\n", "a  b\n", "`\n", "a b\n"),
    ("a.rs", "", "let s = r#\"a\"  b\"#;\n", "", "let s = r#\"a\" b\"#;\n"),
    ("a.rs", "let s = \"a\n", "b  c\";\n", "", "b c\";\n"),
    ("a.cpp", "auto s = R\"(\n", "a  b\n", ")\";\n", "a b\n"),
    ("a.cs", "var s = @\"a\"\"\n", "b  c\";\n", "", "b c\";\n"),
    ("a.java", "String s = \"\"\"\n", "a  b\n", "\"\"\";\n", "a b\n"),
    ("a.lua", "s = [==[\n", "a  b\n", "]==]\n", "a b\n"),
    ("a.sql", "", "SELECT 'it''s  x';\n", "", "SELECT 'it''s x';\n"),
    ("a.sql", "AS $body$\n", "a  b\n", "$body$;\n", "a b\n"),
    ("a.php", "<?php\n$x = <<<EOT\n", "a  b\n", "EOT;\n", "a b\n"),
    ("a.php", "<p>\n", "a  b\n", "</p>\n", "a b\n"),
    ("a.rb", "x = <<~E\n", "a  b\n", "E\n", "a b\n"),
    ("a.rb", "", "x = %q(a  b)\n", "", "x = %q(a b)\n"),
    ("a.rb", "", "x = \"#{h[\"a  b\"]}\"\n", "", "x = \"#{h[\"a b\"]}\"\n"),
    ("a.sh", "cat <<E\n", "a  b\n", "E\n", "a b\n"),
    ("a.sh", "", "echo 'a  b'\n", "", "echo 'a b'\n"),
    ("a.sh", "", "echo \"$(echo \"a  b\")\"\n", "", "echo \"$(echo \"a b\")\"\n"),
    ("a.sh", "", "cat a\\  b\n", "", "cat a\\ b\n"),
    ("a.toml", "a = '''\n", "a  b\n", "'''\n", "a b\n"),
    ("a.yaml", "k: |\n", "  a    b\n", "v: 1\n", "  a b\n"),
    ("a.yaml", "k:\n  - run: >-\n", "      x:   y\n", "v: 1\n", "      x: y\n"),
    ("a.yaml", "", "k: a  b\n", "", "k: a b\n"),
    ("a.md", "```\n", "a  b\n", "```\n", "a b\n"),
    ("a.md", "", "Say `a  b`.\n", "", "Say `a b`.\n"),
    ("a.md", "", "-   item\n", "", "- item\n"),
    ("a.html", "<pre>\n", "<b  c>\n", "</pre>\n", "<b c>\n"),
    ("a.csv", "", "name,  age\n", "", "name, age\n"),
    ("a.txt", "", "name,  age\n", "", "name, age\n"),
    ("a.txt", "HELP = \"\"\"\n", "  -a      all\n", "\"\"\"\n", "  -a all\n"),
    ("a.txt", "const s = `\n", "a    b\n", "`;\n", "a b\n"),
    ("a.txt", "", "k: |\n  a    b\nv: 1\n", "", "k: |\n  a b\nv: 1\n"),
    ("a.txt", "cat <<E\n", "a  b\n", "E\n", "a b\n"),
    ("a.txt", "", "re = /a  b/;\n", "", "re = /a b/;\n"),
    ("a.txt", "", "print(\"say \\\"x  y\\\" now\")\n", "", "print(\"say \\\"x y\\\" now\")\n"),
    // None against some, where that is another thing.
    ("a.css", "", ".nav :hover {\n", "}\n", ".nav:hover {\n"),
    ("a.css", "", "a > .b {\n", "}\n", "a > . b {\n"),
    ("a.scss", "", "&:hover {\n", "}\n", "& :hover {\n"),
    ("a.c", "", "#define F (x)\n", "", "#define F(x)\n"),
    ("a.c", "#define A \\\n", "  F (x)\n", "", "  F(x)\n"),
    ("a.sh", "", "A= b\n", "", "A=b\n"),
    ("a.sh", "", "[ -f x ] && y\n", "", "[-f x] && y\n"),
    ("a.sh", "", "a 2 >b\n", "", "a 2>b\n"),
    ("a.yaml", "", "- a:b\n", "", "- a: b\n"),
    ("a.yaml", "", "a: b #c\n", "", "a: b#c\n"),
    ("a.c", "", "x = a - -b;\n", "", "x = a--b;\n"),
    ("a.c", "", "x = a+ ++b;\n", "", "x = a++ +b;\n"),
    ("a.cpp", "", "A<B<C> > d;\n", "", "A<B<C>> d;\n"),
    ("a.py", "", "x = 1 .real\n", "", "x = 1.real\n"),
    ("a.py", "", "x = not a\n", "", "x = nota\n"),
    ("a.rb", "", "f -1\n", "", "f - 1\n"),
    ("a.rb", "", "f (1)\n", "", "f(1)\n"),
    ("a.rb", "", "a ? b :c\n", "", "a ?b :c\n"),
    ("a.swift", "", "f(a -b)\n", "", "f(a - b)\n"),
    ("a.go", "", "x <-c\n", "", "x < -c\n"),
    ("a.js", "", "x ? .5 : 1\n", "", "x?.5:1\n"),
    ("Makefile", "", "A =  b  c\n", "", "A = b c\n"),
    ("a.txt", "", ".nav :hover {\n", "}\n", ".nav:hover {\n"),
    ("a.txt", "", "#define F (x)\n", "", "#define F(x)\n"),
    ("a.txt", "", "A= b\n", "", "A=b\n"),
    ("a.txt", "", "[ -f x ] && y\n", "", "[-f x] && y\n"),
    ("a.txt", "", "- a:b\n", "", "- a: b\n"),
    ("a.txt", "", "a\tb\n", "", "a b\n"),
    ("a.txt", "", "foo-bar\n", "", "foo - bar\n"),
];

/// SAF-1: blanks that say nothing in the language of the file are tolerated, and nothing but the place is changed.
#[test]
fn blanks_that_say_nothing_are_tolerated() {
    let mut wrong = Vec::new();
    for (path, before, place, behind, search) in FOUND {
        let file = format!("{before}{place}{behind}");
        let request = EditRequest { search, replace: "    new();\n", count: None, path };
        let expected = format!("{before}    new();\n{behind}");
        match edit(file.as_bytes(), &request) {
            Ok(made)
                if made.bytes == expected.as_bytes()
                    && made.tolerance.as_str() == "tolerant(inner-space)" => {}
            Ok(made)
                if place.starts_with(' ') && made.tolerance.as_str() == "tolerant(inner-space)" => {
            }
            got => wrong.push(format!("{path}: {place:?} by {search:?}: {got:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), FOUND.len(), wrong.join("\n"));
}

/// SAF-1: blanks within a text count, and so do those that make another thing of a line; in either direction.
#[test]
fn blanks_that_may_mean_something_count() {
    let mut wrong = Vec::new();
    for (path, before, place, behind, search) in NOT_FOUND {
        for (place, search) in [(place, search), (search, place)] {
            let file = format!("{before}{place}{behind}");
            let request = EditRequest { search, replace: "new", count: None, path };
            match edit(file.as_bytes(), &request) {
                Err(EditError::NotFound { .. }) => {}
                got => wrong.push(format!("{path}: {place:?} by {search:?}: {got:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), NOT_FOUND.len(), wrong.join("\n"));
}

/// Lines that end as code and hold signs which begin a text elsewhere.
const BEFORE: &[(&str, &str)] = &[
    ("a.py", "s = '''it's\n\"'''\n# don't \"\nt = r\"\\\"\"\n"),
    ("a.js", "const s = `it's ${f(`\"`)}\n'`;\n// don't \"\nr = /[\"'/]/;\n"),
    ("a.c", "/* don't\n \" */\nchar c = '\"', d = '\\'';\n"),
    ("a.rs", "let s = r#\"it's \"\n\"#; let c = '\"'; f::<'a>();\n/* /* \" */ ' */\n"),
    ("a.go", "s := `it's\n\"`; c := '\"' // don't \"\n"),
    ("a.java", "String s = \"\"\"\n\" it's\n\"\"\"; char c = '\"';\n"),
    ("a.php", "<p>it's</p>\n<?php\n$s = <<<E\nit's \"\nE;\n# don't \"\n"),
    ("a.sql", "-- don't \"\nSELECT 'it''s \"\n';\n"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// A line is found with any blanks between its tokens, and never with other blanks in one of its texts.
    #[test]
    fn blanks_count_in_texts_alone(
        (path, before) in prop::sample::select(BEFORE),
        texts in prop::collection::vec("[ab(){,:=]{0,3}", 2..4),
        blanks in prop::collection::vec("[ ]{1,3}", 4),
        gaps in prop::collection::vec(prop::sample::select(vec!["", " ", "  ", "\t"]), 40),
        change in 0..3_usize,
    ) {
        let line = |changed: Option<usize>, gaps: &[&str]| {
            let quote = if path == "a.sql" { '\'' } else { '"' };
            let mut tokens = vec!["x".to_owned(), "=".into(), "f".into(), "(".into()];
            for (at, text) in texts.iter().enumerate() {
                let blank = if changed == Some(at) { "    " } else { blanks.get(at).map_or(" ", String::as_str) };
                tokens.extend([format!("{quote}{text}{blank}{text}{quote}"), ",".into()]);
            }
            tokens.extend(["1".into(), ")".into(), "+".into(), "y".into()]);
            let parts = tokens.iter().zip(gaps).enumerate();
            parts.map(|(at, (token, gap))| if at == 0 { token.clone() } else { format!("{gap}{token}") }).collect::<String>()
        };
        let (one, two) = gaps.split_at(20);
        let behind = "\nz(1);\n";
        let file = format!("{before}{}{behind}", line(None, one));
        let ask = |search: &str| {
            let request = EditRequest { search, replace: "new", count: None, path };
            edit(file.as_bytes(), &request).map(|made| String::from_utf8(made.bytes).unwrap())
        };
        prop_assert_eq!(ask(&line(None, two)), Ok(format!("{before}new{behind}")));
        let other = ask(&line(Some(change % texts.len()), two));
        prop_assert!(matches!(other, Err(EditError::NotFound { .. })), "{:?}", other);
    }
}
