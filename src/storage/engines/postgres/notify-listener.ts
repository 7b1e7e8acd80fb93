import pg from 'pg'

const RECONNECT_DELAY_MS = 1_000 // ms between two attempts to listen

/**
 * Hears which tenants other processes have changed, on a connection of its own. Where that leads to a pooler that passes
 * no notifications on, or is down, nobody hears anything, and finds out by looking.
 */
export class NotifyListener {
  #countByTenant = new Map<string, number>()
  /** While nobody listened, anything may have changed. */
  #gaps = 0
  #client?: pg.Client
  #isClosed = false

  constructor(private url: string) {}

  /** How often something was heard of a tenant: another number than before means that something changed. */
  remoteVersion(tenant: string) {
    if (!this.#client) this.#listen()
    return this.#gaps + (this.#countByTenant.get(tenant) ?? 0)
  }

  async close() {
    this.#isClosed = true
    await this.#client?.end().catch(() => {})
  }

  #listen() {
    const client = new pg.Client({
      connectionString: this.url,
      connectionTimeoutMillis: RECONNECT_DELAY_MS,
      keepAlive: true,
    })
    this.#client = client
    const onLost = () => {
      if (this.#client !== client) return
      this.#gaps++
      setTimeout(() => {
        this.#client = undefined
      }, RECONNECT_DELAY_MS).unref()
    }
    client.on('notification', ({ payload = '' }) =>
      this.#countByTenant.set(payload, (this.#countByTenant.get(payload) ?? 0) + 1),
    )
    client.on('error', onLost).on('end', onLost)
    const connect = async () => {
      await client.connect()
      if (this.#isClosed) return client.end()
      await client.query('listen atoll')
      this.#gaps++
    }
    connect().catch(onLost)
  }
}
