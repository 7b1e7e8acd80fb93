// A process that has exclusive access to a tenant, has changed a row, and prints a line: the test kills it then.
import { postgres, sqlite } from './engines'

const { engine, folder, place, migrations } = JSON.parse(process.env.ALONE ?? '')
const bulk = await (engine === 'Postgres' ? postgres() : sqlite({ folder })).openTenantCopy(place, migrations)
await bulk.captureChanges()
await bulk.runExclusive(async ({ query }) => {
  await query("insert into owners (id, name) values ('of the dead', 'x')")
  console.log('alone')
  await Bun.sleep(60_000)
})
