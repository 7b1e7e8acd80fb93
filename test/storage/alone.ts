// A process that is alone in a tenant's data, has changed some of it, and tells so: to be killed then.
import { postgres, sqlite } from './engines'

const { engine, folder, place, migrations } = JSON.parse(process.env.ALONE ?? '')
const bulk = await (engine === 'Postgres' ? postgres() : sqlite({ folder })).bulk(place, migrations)
await bulk.follow()
await bulk.alone(async ({ ask }) => {
  await ask("insert into owners (id, name) values ('of the dead', 'x')")
  console.log('alone')
  await Bun.sleep(60_000)
})
