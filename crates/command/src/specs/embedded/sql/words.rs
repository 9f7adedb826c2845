//! The words of SQL, and of the programs that take it, by what they do.

/// Words that a statement that only asks begins with.
pub(super) const ASKS: &str = "begin close commit declare desc describe end explain fetch from help listen \
    pivot release rollback savepoint select show start status summarize table unpivot use values with";

/// Words that a statement begins with that changes rows, tables or rights.
pub(super) const CHANGES: &str = "alter analyze check cluster comment create deallocate delete execute grant insert \
    lock merge optimize prepare refresh reindex rename replace reset revoke update upsert vacuum";

/// Words that a statement begins with that runs a procedure, loads code or opens another database.
pub(super) const RUNS: &str = "attach call detach do exec install load";

/// Words that change or run something wherever they stand, and are seldom names.
pub(super) const ACTS: &str = "alter attach create delete drop dumpfile exec execute grant insert into merge outfile \
    replace revoke shutdown truncate update";

/// Words at the beginning of a line by which a client, and not the server, is told something.
pub(super) const CLIENT: &str = "edit pager source system tee";

/// All words that could do something where it is not sure what is text and what is not.
pub(super) const COULD: &str = "backup bulk checkpoint copy delimiter discard do export flush go handler import kill \
    notify pragma purge reassign restore security set signal unload";

/// Words by which statements reach files or other computers.
pub(super) const REACHES: &str = "attach copy export glob import install into load outfile dumpfile parquet_scan \
    read_blob read_csv read_csv_auto read_json read_json_auto read_ndjson read_parquet read_text readfile \
    restore sniff_csv writefile";

/// Words behind which what is quoted can be a file to a program that takes files for tables.
pub(super) const TABLE_FOLLOWS: &str = "database describe from join summarize table to";

/// Words that may stand before a parenthesis and are no functions.
pub(super) const BEFORE_PARENTHESIS: &str = "against all analyze and any array as asc between bit by case char character \
    check columns copy cube decimal default desc distinct double else enum escape except excluded exists explain \
    filter float foreign from generated group grouping having ignore in index int integer intersect interval \
    is join key lateral like ilike limit match materialized nchar not number numeric nvarchar of offset on or order \
    over partition precision primary range returning rollup row rows select set sets similar some struct tablesample \
    then time timestamp to top union unique using values varbinary varchar when where within with";

/// Words before the name of something that may have a parenthesis behind it and is no function either.
pub(super) const BEFORE_NAME: &str =
    "as exists index into key on recursive references table to update using view with";

/// Functions that compute, or tell of the database itself, and do nothing else in any dialect.
pub(super) const FUNCTIONS: &str = "abs acos age any_value approx_count_distinct array_agg array_length array_to_string \
    asin atan atan2 avg bit_and bit_length bit_or bool_and bool_or btrim cast cbrt ceil ceiling changes char \
    char_length character_length chr coalesce col_description concat concat_ws convert corr cos count countif \
    count_if cume_dist curdate current_database current_date current_schema current_setting current_time \
    current_timestamp current_user curtime database date date_add date_bin date_diff date_format date_part \
    date_sub date_trunc dateadd datediff datename datepart datetime day dayname dayofmonth dayofweek dayofyear \
    decode degrees dense_rank encode epoch every exp extract field find_in_set first first_value floor format \
    format_type from_unixtime generate_series generate_subscripts getdate glob greatest group_concat \
    grouping hex histogram hour iff ifnull iif initcap insert instr isfinite isnull json json_agg json_array \
    json_array_elements json_array_length json_build_array json_build_object json_contains json_each \
    json_extract json_extract_path json_extract_path_text json_extract_string json_group_array \
    json_group_object json_keys json_length json_object json_object_agg json_object_keys json_quote json_tree \
    json_type json_unquote json_valid json_value jsonb_agg jsonb_array_elements jsonb_array_elements_text \
    jsonb_array_length jsonb_build_object jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query \
    jsonb_pretty jsonb_typeof julianday justify_hours lag last last_day last_insert_rowid last_value lcase lead \
    least left len length likelihood likely list list_contains ln locate log log10 log2 lower lpad ltrim \
    make_date make_interval make_timestamp max max_by md5 median mid min min_by minute mod mode month monthname \
    nth_value ntile now nullif num_nonnulls num_nulls obj_description octet_length ord overlaps percent_rank \
    percentile_cont percentile_disc pg_column_size pg_database_size pg_get_constraintdef pg_get_expr \
    pg_get_functiondef pg_get_indexdef pg_get_viewdef pg_indexes_size pg_is_in_recovery \
    pg_postmaster_start_time pg_relation_size pg_size_pretty pg_table_is_visible pg_table_size \
    pg_total_relation_size pg_typeof pi position pow power printf quantile quantile_cont quarter quote \
    quote_ident quote_literal quote_nullable radians rand random random_uuid range rank regexp_like \
    regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat replace \
    reverse right round row_count row_number row_to_json rpad rtrim schema second sha1 sha2 sha256 sign sin \
    soundex split_part sqlite_source_id sqlite_version sqrt stddev stddev_pop stddev_samp str_to_date strftime \
    string_agg string_split string_to_array strpos strptime struct_pack subdate substr substring substring_index \
    subtotal sum sysdate tan timediff timestampdiff to_base64 to_char to_date to_days to_hex to_json to_jsonb \
    to_number to_regclass to_timestamp total total_changes translate trim trunc truncate try_cast typeof ucase \
    unhex unicode unix_timestamp unixepoch unlikely unnest upper user uuid uuid_generate_v4 var_pop var_samp \
    variance version week weekday width_bucket year zeroblob gen_random_uuid";

/// What `pragma` tells and does not change.
pub(super) const PRAGMAS: &str = "application_id auto_vacuum busy_timeout cache_size collation_list compile_options \
    database_list database_size encoding foreign_key_check foreign_key_list foreign_keys freelist_count \
    function_list index_info index_list index_xinfo integrity_check journal_mode max_page_count module_list \
    page_count page_size pragma_list query_only quick_check schema_version show_tables show_tables_expanded \
    synchronous table_info table_list table_xinfo user_version version";

/// Those of them that are told something by a parenthesis about what they tell of.
pub(super) const PRAGMAS_ABOUT: &str = "foreign_key_check foreign_key_list index_info index_list index_xinfo \
    integrity_check quick_check table_info table_list table_xinfo";

/// Commands of the SQLite shell that only print, or say how it is printed.
pub(super) const DOT_PRINTS: &str = ".bail .changes .columns .databases .dbinfo .dump .echo .eqp .exit .explain \
    .fullschema .header .headers .help .indexes .indices .lint .mode .nullvalue .print .quit .schema .separator \
    .show .stats .tables .timer .version .width";

/// The same of `psql`, besides those that begin with `\d`.
pub(super) const BACKSLASH_PRINTS: &str =
    "? a c conninfo connect encoding h l pset q sf sv t timing x z";

/// Whether a list of words has one.
pub(super) fn has(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|text| text == word)
}
