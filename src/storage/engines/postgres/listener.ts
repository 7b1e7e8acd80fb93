import pg from 'pg'

const AGAIN = 1_000 // ms between two attempts to listen

/**
 * Hears which tenants other processes have changed, on a connection of its own. Where that leads to a pooler that passes
 * no notifications on, or is down, nobody hears anything, and finds out by looking.
 */
export class Listener {
  #heard = new Map<string, number>()
  /** While nobody listened, anything may have changed. */
  #missed = 0
  #client?: pg.Client
  #closed = false

  constructor(private url: string) {}

  /** How often something was heard of a tenant: another number than before means that something changed. */
  heard(tenant: string) {
    if (!this.#client) this.#listen()
    return this.#missed + (this.#heard.get(tenant) ?? 0)
  }

  async close() {
    this.#closed = true
    await this.#client?.end().catch(() => {})
  }

  #listen() {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: AGAIN, keepAlive: true })
    this.#client = client
    const lost = () => {
      if (this.#client !== client) return
      this.#missed++
      setTimeout(() => {
        this.#client = undefined
      }, AGAIN).unref()
    }
    client.on('notification', ({ payload = '' }) => this.#heard.set(payload, (this.#heard.get(payload) ?? 0) + 1))
    client.on('error', lost).on('end', lost)
    const begin = async () => {
      await client.connect()
      if (this.#closed) return client.end()
      await client.query('listen atoll')
      this.#missed++
    }
    begin().catch(lost)
  }
}
