// A process that uses the same data, for tests of concurrent processes: `bun sqlite-process.ts <what> <path>`.
import { Database } from 'bun:sqlite'
import { Sqlite } from '../../src/storage/engines/sqlite/engine'

const [, , what, path = ''] = process.argv
const pause = () => Bun.sleep(5)

/** Locks a folder until the process is killed. */
async function own() {
  await new Sqlite({ driver: 'bun:sqlite', folder: path, synchronous: 'normal', lockTimeout: 100 }).lockFolder()
  console.log('owned')
  await Bun.sleep(60_000)
}

/** Increments a counter 40 times, and holds the write lock for a while each time. */
async function count() {
  const db = new Database(path)
  db.run('pragma busy_timeout = 5000')
  console.log('counting')
  for (let n = 0; n < 40; n++) {
    db.run('begin immediate')
    const { count } = db.query('select count from things where id = ?').get('shared') as { count: number }
    await pause()
    db.run('update things set count = ? where id = ?', [count + 1, 'shared'])
    db.run('commit')
    await pause()
  }
  db.close()
}

/** Holds the write lock until the process is killed. */
async function hold() {
  const db = new Database(path)
  db.run('begin immediate')
  console.log('holding')
  await Bun.sleep(60_000)
}

await { own, count, hold }[what as 'own']()
