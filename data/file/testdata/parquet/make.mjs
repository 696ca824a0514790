// Makes the .parquet files beside it by three writers that are none of ours:
//
//	npm install @duckdb/node-api@1.5.6-r.1 hyparquet-writer@0.17.0 parquet-wasm@0.8.0 apache-arrow@21.2.0
//	node make.mjs FOLDER
import { DuckDBInstance } from '@duckdb/node-api'
import { parquetWriteFile } from 'hyparquet-writer'
import * as arrow from 'apache-arrow'
import wasm from 'parquet-wasm/node'
import { writeFileSync } from 'node:fs'

const folder = process.argv[2]
const db = await (await DuckDBInstance.create(':memory:')).connect()
const copy = (query, name, options = '') => db.run(`COPY (${query}) TO '${folder}/${name}.parquet' (FORMAT parquet${options})`)

// The table that all but a few files hold, of 50 rows.
const table = `SELECT (i*0.5)::FLOAT AS a, i::DOUBLE/3 AS b, (i%7)::UTINYINT AS c, -i::BIGINT AS d, (i%2=0) AS e, 'k' || (i%3) AS kind FROM range(50) t(i)`
for (const codec of ['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli']) await copy(table, `duckdb-${codec}`, `, COMPRESSION ${codec}`)
await copy(table, 'duckdb-v2', ', PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1')
await copy('SELECT [i*0.5, i/3, i%7, -i]::FLOAT[4] AS vector, i AS id FROM range(50) t(i)', 'duckdb-array')
await copy(`SELECT CASE WHEN i=7 THEN NULL ELSE i END AS a, i AS b, CASE WHEN i=3 THEN NULL ELSE 'x' END AS kind FROM range(20) t(i)`, 'duckdb-nulls')
await copy('SELECT CASE WHEN i=7 THEN [1, 2]::DOUBLE[] ELSE [i, i, i] END AS v FROM range(20) t(i)', 'duckdb-ragged')
await copy('SELECT CASE WHEN i=7 THEN [1, NULL, 2]::DOUBLE[] ELSE [i, i, i] END AS v FROM range(20) t(i)', 'duckdb-null-in-list')
await copy(`SELECT i AS a, TIMESTAMP '2020-01-01' AS t, DATE '2020-01-01' AS day, i::DECIMAL(9, 2) AS price, {x: i, y: i} AS pair, [[i]] AS nested, ['a'] AS words FROM range(5) t(i)`, 'duckdb-types')
// Types that are neither plain numbers nor text, and how DuckDB writes them in CSV.
const logical = `SELECT CASE WHEN i=3 THEN NULL ELSE (i*1.25-2)::DECIMAL(4,2) END AS price, (i*100001.5)::DECIMAL(18,3) AS mass, (i*0.0000000001)::DECIMAL(38,10) AS huge,
  md5(i::VARCHAR)::UUID AS uid, DATE '2020-01-01' + (i%4)::INT AS day, TIMESTAMP '2020-01-01' + INTERVAL (i) HOUR AS ts, TIME '12:30:00' + INTERVAL (i) MINUTE AS clock, [i*0.5, 1.25] AS pair FROM range(20) t(i)`
await copy(logical, 'duckdb-logical')
await db.run(`COPY (${logical}) TO '${folder}/duckdb-logical.csv'`)
await copy(`SELECT CASE WHEN i%5=0 THEN NULL WHEN i=1 THEN [] WHEN i=7 THEN [1, NULL, 2]::DOUBLE[] ELSE [i, i/2, -i]::DOUBLE[] END AS v FROM range(30) t(i)`, 'duckdb-null-lists')
await copy(`SELECT sin(i) AS a, NULL AS note FROM range(20) t(i)`, 'duckdb-all-null')
await copy('SELECT i AS a FROM range(0) t(i)', 'duckdb-empty')
await copy('SELECT i::INTEGER AS a, (i*i)::UINTEGER AS b, (i%3)::SMALLINT AS c FROM range(5000) t(i)', 'duckdb-groups', ', ROW_GROUP_SIZE 2048, PARQUET_VERSION v2')

const rows = [...Array(50).keys()]
parquetWriteFile({ filename: `${folder}/hyparquet.parquet`, columnData: [
  { name: 'a', data: rows.map(i => i * 0.5), type: 'FLOAT' }, { name: 'b', data: rows.map(i => i / 3), type: 'DOUBLE' },
  { name: 'c', data: rows.map(i => i % 7), type: 'INT32' }, { name: 'd', data: rows.map(i => BigInt(-i)), type: 'INT64' },
  { name: 'e', data: rows.map(i => i % 2 === 0), type: 'BOOLEAN' }, { name: 'kind', data: rows.map(i => 'k' + i % 3), type: 'STRING' } ] })

// Arrow's types, written by arrow-rs: dictionaries of texts, lists of fixed and of any size.
const list = new arrow.FixedSizeList(4, new arrow.Field('item', new arrow.Float64(), false))
const vector = i => [i * 0.5, i / 3, i % 7, 0 - i]
const write = (name, columns, properties) => writeFileSync(`${folder}/${name}.parquet`,
  wasm.writeParquet(wasm.Table.fromIPCStream(arrow.tableToIPC(new arrow.Table(columns), 'stream')), properties))
write('arrow', {
  a: arrow.vectorFromArray(rows.map(i => i * 0.5), new arrow.Float32), b: arrow.vectorFromArray(rows.map(i => i / 3), new arrow.Float64),
  c: arrow.vectorFromArray(rows.map(i => i % 7), new arrow.Uint8), d: arrow.vectorFromArray(rows.map(i => BigInt(-i)), new arrow.Int64),
  e: arrow.vectorFromArray(rows.map(i => i % 2 === 0), new arrow.Bool), kind: arrow.vectorFromArray(rows.map(i => 'k' + i % 3), new arrow.Dictionary(new arrow.Utf8, new arrow.Int32)) })
write('arrow-list', { vector: arrow.vectorFromArray(rows.map(vector), list), kind: arrow.vectorFromArray(rows.map(i => 'k' + i % 3), new arrow.Utf8) })
const split = new wasm.WriterPropertiesBuilder().setEncoding(wasm.Encoding.BYTE_STREAM_SPLIT).setDictionaryEnabled(false).setWriterVersion(wasm.WriterVersion.V2).setCompression(wasm.Compression.ZSTD).setDataPageSizeLimit(128).setWriteBatchSize(7).build()
write('arrow-split', { a: arrow.vectorFromArray(rows.map(i => i * 0.5), new arrow.Float32), b: arrow.vectorFromArray(rows.map(i => i / 3), new arrow.Float64) }, split)
write('arrow-half', { a: arrow.vectorFromArray(rows.map(i => i * 0.5), new arrow.Float16) })
write('arrow-prefix', { a: arrow.vectorFromArray(rows.map(i => i * 0.5), new arrow.Float32), name: arrow.vectorFromArray(rows.map(i => `papers/2020/article-${i}`), new arrow.Utf8) },
  new wasm.WriterPropertiesBuilder().setDictionaryEnabled(false).setWriterVersion(wasm.WriterVersion.V2).build())
