// A process that opens a database, which a migration rewrites. The test kills it meanwhile.
import { sqlite } from './engines'

const { folder, location, migrations } = JSON.parse(process.env.MIGRATION ?? '')
const database = await sqlite({ folder }).open(location, migrations)
await database.close()
console.log('migrated')
process.exit()
