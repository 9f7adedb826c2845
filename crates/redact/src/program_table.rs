//! Programs whose command lines take passwords by options that do not say so, as a table.

/// How a password is given to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PasswordSyntax {
    /// In the same word: `-pSECRET`.
    SameArgument,
    /// In the next word.
    NextArgument,
    /// In either.
    Either,
    /// In the word behind one that begins so.
    AfterPrefix,
    /// In either, behind a name and a colon.
    UserColon,
    /// In the next word, behind a name and this sign.
    NextUserSeparator(u8),
    /// In the next word, behind `pass:`.
    Scheme,
    /// In the next word, if it looks random.
    Random,
}

/// A program, and its options. An empty option stands for words that are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct PasswordProgram {
    pub(super) name: &'static str,
    /// How its command lines begin that hold one, where its name stands in many other places.
    pub(super) marker: Option<&'static str>,
    /// The word behind its name without which nothing holds.
    pub(super) required_argument: &'static str,
    pub(super) options: &'static [(&'static str, PasswordSyntax)],
}

const fn program(
    name: &'static str,
    only: &'static str,
    flags: &'static [(&'static str, PasswordSyntax)],
) -> PasswordProgram {
    PasswordProgram { name, marker: None, required_argument: only, options: flags }
}

const fn program_with_marker(
    name: &'static str,
    beginning: &'static str,
    flags: &'static [(&'static str, PasswordSyntax)],
) -> PasswordProgram {
    PasswordProgram { name, marker: Some(beginning), required_argument: "", options: flags }
}

use PasswordSyntax::{
    AfterPrefix, Either, NextArgument, NextUserSeparator, Random, SameArgument, Scheme, UserColon,
};

/// Source: the pages of the manual of each.
pub(super) const PROGRAMS: &[PasswordProgram] = &[
    program("mysql", "", &[("-p", SameArgument)]),
    program("mysqldump", "", &[("-p", SameArgument)]),
    program("mysqladmin", "", &[("-p", SameArgument)]),
    program("mysqlimport", "", &[("-p", SameArgument)]),
    program("mariadb", "", &[("-p", SameArgument)]),
    program("mariadb-dump", "", &[("-p", SameArgument)]),
    program("sshpass", "", &[("-p", Either)]),
    program(
        "curl",
        "",
        &[("-u", UserColon), ("--user", UserColon), ("--proxy-user", UserColon), ("-U", UserColon)],
    ),
    program_with_marker("http", "http -", &[("-a", UserColon), ("--auth", UserColon)]),
    program_with_marker("https", "https -", &[("-a", UserColon), ("--auth", UserColon)]),
    program("redis-cli", "", &[("-a", NextArgument), ("--pass", NextArgument)]),
    program("mongo", "", &[("-p", NextArgument)]),
    program("mongosh", "", &[("-p", NextArgument)]),
    program("mongodump", "", &[("-p", NextArgument)]),
    program("mongorestore", "", &[("-p", NextArgument)]),
    program("docker", "login", &[("-p", Either)]),
    program("podman", "login", &[("-p", Either)]),
    program("nerdctl", "login", &[("-p", Either)]),
    program("buildah", "", &[("--creds", UserColon), ("-p", Either)]),
    program(
        "skopeo",
        "",
        &[("--src-creds", UserColon), ("--dest-creds", UserColon), ("--creds", UserColon)],
    ),
    program("helm", "login", &[("-p", NextArgument)]),
    program("oras", "login", &[("-p", NextArgument)]),
    program("az", "login", &[("-p", NextArgument)]),
    program("twine", "upload", &[("-p", NextArgument)]),
    program(
        "openssl",
        "",
        &[("-pass", Scheme), ("-passin", Scheme), ("-passout", Scheme), ("-k", NextArgument)],
    ),
    program("zip", "", &[("-P", Either)]),
    program("unzip", "", &[("-P", Either)]),
    program("7z", "", &[("-p", SameArgument)]),
    program("7za", "", &[("-p", SameArgument)]),
    program("ssh-keygen", "", &[("-N", NextArgument), ("-P", NextArgument)]),
    program("sqlcmd", "", &[("-P", Either)]),
    program("bcp", "", &[("-P", Either)]),
    program("isql", "", &[("-P", Either)]),
    program("sqlplus", "", &[("", NextUserSeparator(b'/'))]),
    program("ldapsearch", "", &[("-w", NextArgument)]),
    program("ldapmodify", "", &[("-w", NextArgument)]),
    program("ldapadd", "", &[("-w", NextArgument)]),
    program("htpasswd", "", &[("", Random)]),
    program("smbclient", "", &[("-U", NextUserSeparator(b'%'))]),
    program("lftp", "", &[("-u", NextUserSeparator(b','))]),
    program("keytool", "", &[("-storepass", NextArgument), ("-keypass", NextArgument)]),
    program("snmpwalk", "", &[("-c", NextArgument)]),
    program("snmpget", "", &[("-c", NextArgument)]),
    program("ipmitool", "", &[("-P", NextArgument)]),
    program("xfreerdp", "", &[("/p:", SameArgument)]),
    program("cmdkey", "", &[("/pass:", SameArgument)]),
    program("net", "use", &[("/user:", AfterPrefix), ("/USER:", AfterPrefix)]),
    program("rabbitmqctl", "", &[("", Random)]),
    program("wandb", "login", &[("", Random)]),
    program("vault", "login", &[("", Random)]),
    program("netlify", "", &[("--auth", NextArgument)]),
    program("stats", "auth", &[("", NextUserSeparator(b':'))]),
];
