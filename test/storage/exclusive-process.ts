// A process that is alone in a tenant's data, has changed some of it, and tells so: to be killed then.
import { postgres, sqlite } from './engines'

const { engine, folder, place, migrations } = JSON.parse(process.env.ALONE ?? '')
const bulk = await (engine === 'Postgres' ? postgres() : sqlite({ folder })).openTenantCopy(place, migrations)
await bulk.captureChanges()
await bulk.runExclusive(async ({ query }) => {
  await query("insert into owners (id, name) values ('of the dead', 'x')")
  console.log('alone')
  await Bun.sleep(60_000)
})
