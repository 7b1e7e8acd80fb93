// `npm run bench -- --engine postgres`: the rows of the table on a PostgreSQL server, beside pgbench.
import { join } from 'node:path'
import { createDatabase, queryDatabase, startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'
import type { ComparisonOptions } from './comparison'
import { createRandom } from './random'
import { createReport, writeReport } from './report'
import { createAtollSide, toProgram } from './sides/atoll'
import { createPgbenchContender } from './sides/pgbench'
import { measureRow, toContender } from './table'
import { printRow } from './table-print'
import { drawUsualLists, TABLE_ROWS, USED_LISTS } from './table-rows'

export async function comparePostgres(options: Omit<ComparisonOptions, 'peer' | 'peerDurable'>) {
  const { rows, seconds, rounds, only, program = '.', before } = options
  const server = await startPostgres({ durable: true })
  const folder = createTempFolder('bench')
  const atoll = createSide(server.url, { name: 'Atoll', folder: join(folder, 'atoll'), rows, program })
  const sides = [atoll]
  if (before !== undefined)
    sides.push(createSide(server.url, { name: 'Atoll before', folder: join(folder, 'before'), rows, program: before }))
  console.log(`${rows} contacts, ${rounds} rounds of ${seconds} s`)
  for (const side of sides) {
    console.log(`${side.name}: ${Math.round(await side.fill())} rows/s imported`)
    await side.useLists(drawUsualLists(createRandom('used'), rows, USED_LISTS))
  }
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

/** Its databases have a prefix of their own. */
function createSide(serverUrl: string, { program, ...options }: SideOptions) {
  const prefix = options.name.replaceAll(/\W/g, '_').toLowerCase()
  const nameOf = (place: string) => `${prefix}_${place}`
  return createAtollSide({
    ...options,
    program: toProgram(program),
    database: {
      create: async (place) => void (await queryDatabase(serverUrl, `create database ${nameOf(place)}`)),
      urlOf: (place) => `${Object.assign(new URL(serverUrl), { pathname: `/${nameOf(place)}` })}`,
      async copy(from, to) {
        await queryDatabase(serverUrl, `drop database if exists ${nameOf(to)} with (force)`)
        await queryDatabase(serverUrl, `create database ${nameOf(to)} template ${nameOf(from)} strategy file_copy`)
      },
    },
  })
}
