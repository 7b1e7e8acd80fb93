// The limit on PostgreSQL: pgbench runs the plain statements, with fitting indexes, on a table of contacts.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { findPostgresBin } from '../../fakes/postgres'
import { createTempFolder } from '../../temp-folder'
import { contactId, makeRecord } from '../contacts'
import { percentilesOf } from '../load'
import type { Question } from '../questions'
import type { Contender } from '../table'
import type { TableRow } from '../table-rows'
import { toColumns, toCompanyColumns } from './limit'
import { companyNumbers, createFittingIndexes, createSingleIndexes, createTables, toSelect } from './plain-sql'

const MAX_SCRIPTS = 100 // of one run; pgbench takes 128
const ROWS_PER_INSERT = 1_000

/** Fills a separate database with the responses of Atoll. Rows that write use a copy, whose URL `copy` returns. */
export async function createPgbenchContender(
  databaseUrl: string,
  json: string[],
  copy: () => Promise<string>,
): Promise<Contender> {
  await fill(databaseUrl, json)
  return {
    name: 'pgbench',
    async measure(row, questions, seconds) {
      if (!row.inFlight) return
      const statements = questions.slice(0, MAX_SCRIPTS).map((question) => toStatements(question))
      if (!statements.every((statement) => statement !== undefined)) return
      return runPgbench(row.writes ? await copy() : databaseUrl, row, statements, seconds)
    },
  }
}

async function fill(url: string, json: string[]) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('create extension pg_trgm')
    for (const sql of createTables('postgres')) await client.query(sql)
    for (const n of companyNumbers) await client.query('insert into companies values ($1, $2)', toCompanyColumns(n))
    for (let from = 0; from < json.length; from += ROWS_PER_INSERT) {
      const rows = json.slice(from, from + ROWS_PER_INSERT).map((text, n) => toColumns(text, from + n))
      const columns = rows[0]!.map((_, place) => rows.map((row) => row[place]))
      const types = [
        'text',
        'text',
        'text',
        'text',
        'int',
        'text',
        'int',
        'text',
        'int',
        'bigint',
        'text',
        'int',
        'int',
      ]
      const lists = types.map((type, place) => `$${place + 1}::${type}[]`)
      await client.query(`insert into contacts select * from unnest(${lists})`, columns)
    }
    await client.query(
      "update contacts set words = to_tsvector('simple', concat_ws(' ', name, email, json::jsonb ->> 'notes'))",
    )
    for (const sql of [...createSingleIndexes(), ...createFittingIndexes()]) await client.query(sql)
    await client.query('create index contacts_words on contacts using gin (words)')
    await client.query('create index contacts_parts on contacts using gin (name gin_trgm_ops)')
    await client.query('vacuum full')
    // Only this notes which pages need no look at their rows.
    await client.query('vacuum analyze')
  } finally {
    await client.end()
  }
}

/** Returns statements with their values, one per line; undefined for rows that a database alone cannot do. */
function toStatements(question: Question): string | undefined {
  switch (question.kind) {
    case 'get':
      return `select json from contacts where id = ${quote(contactId(question.contact))};`
    case 'list': {
      const { sql, countSql, values } = toSelect('postgres', question)
      const statements = question.isCounted ? [sql, countSql] : [sql]
      return statements.map((statement) => `${fillIn(statement, values)};`).join('\n')
    }
    case 'create': {
      const record = makeRecord(question.n)
      const { name, email, stage, worth, company, active, born } = record
      // pgbench takes a colon and a word for a variable.
      const json = JSON.stringify(record).replaceAll('":', '": ')
      const values = [name, email, stage, worth, company, active ? 1 : 0, born].map(quote)
      return `insert into contacts (id, name, email, stage, worth, company, active, born, created, json)
        values (gen_random_uuid()::text, ${values}, 0, ${quote(json)});`.replaceAll(/\n\s*/g, ' ')
    }
    case 'update': {
      const { stage, worth } = question.change
      return `update contacts set stage = ${quote(stage)}, worth = ${worth} where id = ${quote(contactId(question.contact))};`
    }
  }
}

const quote = (value: string | number) => (typeof value === 'number' ? `${value}` : `'${value.replaceAll("'", "''")}'`)

function fillIn(sql: string, values: (string | number)[]) {
  let place = 0
  return sql.replaceAll('?', () => quote(values[place++]!))
}

async function runPgbench(url: string, row: TableRow, statements: string[], seconds: number) {
  const folder = createTempFolder('pgbench')
  const files = statements.map((text, n) => {
    const file = join(folder, `${n}.sql`)
    writeFileSync(file, `${text}\n`)
    return file
  })
  const bin = findPostgresBin()
  const program = Bun.which('pgbench') ?? join(bin!, 'pgbench')
  const clients = ['-c', `${row.inFlight}`, '-j', '1']
  const log = ['--log', `--log-prefix=${join(folder, 'log')}`]
  const run = Bun.spawn(
    [
      program,
      '-n',
      '-M',
      'prepared',
      ...clients,
      '-T',
      `${Math.ceil(seconds)}`,
      ...log,
      ...files.flatMap((file) => ['-f', file]),
      url,
    ],
    {
      env: { ...process.env, PGOPTIONS: `-c synchronous_commit=${row.isDurable ? 'on' : 'off'}` },
      ...{ stdout: 'pipe', stderr: 'pipe' },
    },
  )
  const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited])
  // It ends with 0 when all of its clients were refused.
  if (code || !out.includes('tps = ')) throw new Error(`pgbench failed: ${err}`)
  const times = readdirSync(folder)
    .filter((name) => name.startsWith('log'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'))
    .map((line) => Number(line.split(' ')[2]) / 1_000)
  const perSecond = Number(/tps = ([\d.]+)/.exec(out)?.[1])
  return { perSecond, ...percentilesOf(times), errors: 0, maxMb: 0 }
}
