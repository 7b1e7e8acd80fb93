// `bun test/on-postgres.ts [files or options of bun test]`: runs tests beside a new PostgreSQL server. Without files, it runs those
// of all features: a file whose first line is `// engine: sqlite` tests something that no engine or SQLite alone has.
import { readFileSync } from 'node:fs'
import { startPostgres } from './fakes/postgres'

const SQLITE_ONLY = '// engine: sqlite\n'

const args = process.argv.slice(2)
const tests = [...new Bun.Glob('test/**/*.test.{ts,tsx}').scanSync('.')]
  .filter((file) => !file.includes('node_modules'))
  .sort()
const files = tests.filter((file) => !readFileSync(file, 'utf8').startsWith(SQLITE_ONLY)).map((file) => `./${file}`)
const hasFiles = args.some((arg) => !arg.startsWith('-'))
const server = await startPostgres()
const child = Bun.spawn(
  [
    ...[process.execPath, 'test', '--timeout', '60000', '--timings=test/timings.json'],
    ...(hasFiles ? args : [...files, ...args]),
  ],
  { env: { ...process.env, TEST_DATABASE_URL: server.url }, stdio: ['inherit', 'inherit', 'inherit'] },
)
const code = await child.exited
await server.stop()
process.exit(code)
