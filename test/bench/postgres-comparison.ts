// `npm run bench -- --engine postgres`: the rows of the table on a PostgreSQL server, beside pgbench.
import { join } from 'node:path'
import { createDatabase, queryDatabase, startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'
import type { ComparisonOptions } from './comparison'
import { createReport, writeReport } from './report'
import { createAtollSide, toProgram } from './sides/atoll'
import { createPgbenchContender } from './sides/pgbench'
import { measureRow, toContender } from './table'
import { printRow } from './table-print'
import { TABLE_ROWS } from './table-rows'

export async function comparePostgres(options: Omit<ComparisonOptions, 'peer' | 'peerDurable'>) {
  const { rows, seconds, rounds, only, program = '.', before } = options
  const server = await startPostgres({ durable: true })
  const folder = createTempFolder('bench')
  const atoll = await createSide(server.url, { name: 'Atoll', folder: join(folder, 'atoll'), rows, program })
  const sides = [atoll]
  if (before !== undefined)
    sides.push(
      await createSide(server.url, { name: 'Atoll before', folder: join(folder, 'before'), rows, program: before }),
    )
  console.log(`${rows} contacts, ${rounds} rounds of ${seconds} s`)
  for (const side of sides) console.log(`${side.name}: ${Math.round(await side.fill())} rows/s imported`)
  const { json } = await atoll.readAll()
  const contenders = [...sides.map(toContender), await createPgbenchContender(await createDatabase(server.url), json)]
  const names = contenders.map(({ name }) => name)
  const report = createReport({ rows, seconds, rounds })
  const out = options.out.replace(/\.json$/, '-postgres.json')
  for (const row of TABLE_ROWS.filter(({ name, inFlight }) => inFlight && (!only || only.test(name)))) {
    const result = await measureRow(row, { contenders, rows, seconds, rounds })
    printRow(result, names)
    report.results.push(result)
    writeReport(report, names, out)
  }
  console.log(`\nwritten to ${out}`)
  await server.stop()
}

type SideOptions = { name: string; folder: string; rows: number; program: string }

/** Each start has a copy of the database that was filled. */
async function createSide(serverUrl: string, { program, ...options }: SideOptions) {
  const url = await createDatabase(serverUrl)
  const filled = new URL(url).pathname.slice(1)
  const copy = `${filled}_copy`
  return createAtollSide({
    ...options,
    program: toProgram(program),
    database: {
      url,
      async renew() {
        await queryDatabase(serverUrl, `drop database if exists ${copy} with (force)`)
        await queryDatabase(serverUrl, `create database ${copy} template ${filled} strategy file_copy`)
        return `${Object.assign(new URL(url), { pathname: `/${copy}` })}`
      },
    },
  })
}
