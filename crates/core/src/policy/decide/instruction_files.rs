//! The files by which builds and tests are told what to run.

/// Names of files that a program reads as its orders without being given them; `*` stands for any characters.
/// Sources: the manuals of the programs that read them.
pub(super) const INSTRUCTIONS: &str = "Makefile makefile GNUmakefile *.mk Makefile.* Kbuild CMakeLists.txt *.cmake CMakePresets.json \
    CMakeUserPresets.json meson.build meson_options.txt build.ninja SConstruct SConscript wscript configure configure.ac \
    configure.in package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml lerna.json nx.json turbo.json \
    bunfig.toml deno.json deno.jsonc Cargo.toml build.rs rust-toolchain rust-toolchain.toml pyproject.toml setup.py setup.cfg \
    tox.ini noxfile.py conftest.py pytest.ini .coveragerc sitecustomize.py usercustomize.py *.pth dodo.py fabfile.py \
    build.gradle build.gradle.kts settings.gradle settings.gradle.kts init.gradle gradle.properties \
    gradle-wrapper.properties pom.xml maven.config extensions.xml build.xml build.sbt build.sc justfile Justfile .justfile \
    Taskfile.yml Taskfile.yaml Taskfile.dist.yml Rakefile rakefile *.rake Gemfile *.gemspec .rspec composer.json phpunit.xml \
    phpunit.xml.dist mix.exs rebar.config dune dune-project BUILD BUILD.bazel WORKSPACE MODULE.bazel .bazelrc *.bzl BUCK \
    *.csproj *.fsproj *.vbproj *.sln *.props *.targets global.json nuget.config NuGet.Config go.work Package.swift build.zig \
    Dockerfile *.dockerfile Containerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml Vagrantfile Procfile \
    Earthfile Snakefile Jenkinsfile flake.nix default.nix shell.nix lefthook.yml .pre-commit-config.yaml tasks.py \
    *.config.js *.config.cjs *.config.mjs *.config.ts *.config.mts *.conf.js .babelrc .babelrc.* .eslintrc .eslintrc.* .mocharc.* \
    .postcssrc .postcssrc.* .stylelintrc* .prettierrc.* gulpfile.* Gruntfile.* karma.conf.* .nycrc .c8rc .lintstagedrc* \
    .commitlintrc* .releaserc* .parcelrc project.json angular.json *.cabal cabal.project stack.yaml package.yaml Setup.hs \
    project.clj deps.edn *.gradle *.gradle.kts *.ninja *.nimble config.nims *.opam shard.yml dub.json pubspec.yaml Jamfile \
    Jamroot Tupfile *.pro CMakeCache.txt conanfile.py pavement.py duties.py hatch.toml pants.toml mise.toml .mise.toml \
    .tool-versions latexmkrc .latexmkrc .Rprofile .proverc cpanfile dist.ini .irbrc .pryrc .rubocop.yml Guardfile Thorfile Fastfile \
    Podfile Dangerfile mypy.ini .pylintrc pylintrc .flake8 .php-cs-fixer.php .php-cs-fixer.dist.php phpstan.neon rector.php \
    psalm.xml magefile.go .golangci.yml buf.gen.yaml Doxyfile Brewfile xmake.lua premake5.lua";
