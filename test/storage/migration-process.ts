// Opens a database that a pending migration rewrites, in a process that the test kills during the migration.
import { sqlite } from './engines'

const { folder, location, migrations } = JSON.parse(process.env.MIGRATION ?? '')
const database = await sqlite({ folder }).open(location, migrations)
await database.close()
console.log('migrated')
process.exit()
