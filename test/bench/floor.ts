import { Database } from 'bun:sqlite'

// What this machine can do at most: bare Bun.serve, one prepared statement a route, the answer kept as finished JSON.
const [file = '', durability = 'full'] = process.argv.slice(2)
const db = new Database(file)
db.exec(
  `pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = ${durability}; pragma cache_size = -64000`,
)
const byId = db.prepare<{ json: string }, [string]>('select json from things where id = ?')
const newest = db.prepare<{ json: string }, [string]>(
  'select json from things where category = ? order by created desc limit 20',
)
const insert = db.prepare('insert into things (id, category, created, json) values (?, ?, ?, ?)')
const headers = { 'content-type': 'application/json;charset=utf-8' }

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const url = request.url
    if (request.method === 'POST') {
      const body = await request.text()
      const id = Bun.randomUUIDv7()
      insert.run(id, JSON.parse(body).category, Date.now(), body) // a commit of its own
      return new Response(body, { status: 201, headers })
    }
    const filter = url.indexOf('?category=')
    if (filter > 0) {
      const category = decodeURIComponent(url.slice(filter + 10).split('&')[0]!)
      return new Response(
        `[${newest
          .all(category)
          .map(({ json }) => json)
          .join(',')}]`,
        { headers },
      )
    }
    const found = byId.get(url.slice(url.lastIndexOf('/') + 1))
    return found ? new Response(found.json, { headers }) : new Response('null', { status: 404 })
  },
})
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }))
