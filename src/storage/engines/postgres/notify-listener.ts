import pg from 'pg'

const RECONNECT_DELAY_MS = 1_000 // between two attempts to listen

/**
 * Counts the changes of tenants by other processes, on a connection of its own. Without the connection, or behind a
 * pooler that passes no notifications on, changes are found only by polling.
 */
export class NotifyListener {
  #countByTenant = new Map<string, number>()
  /** Anything may have changed while the connection was lost. */
  #gaps = 0
  #client?: pg.Client
  #isClosed = false

  /** @param onChange is called with the tenant of each notification */
  constructor(
    private url: string,
    private onChange: (tenant: string) => void,
  ) {}

  /** Returns a number that differs from an earlier one when another process may have changed the tenant. */
  remoteVersion(tenant: string) {
    if (!this.#client) this.#listen()
    return this.#gaps + (this.#countByTenant.get(tenant) ?? 0)
  }

  async close() {
    this.#isClosed = true
    await this.#client?.end().catch(() => {}) // the connection may be broken already
  }

  #listen() {
    const client = new pg.Client({
      connectionString: this.url,
      connectionTimeoutMillis: RECONNECT_DELAY_MS,
      keepAlive: true,
    })
    this.#client = client
    let isLost = false
    // A connection may break, refuse to listen, and end afterwards.
    const onLost = () => {
      if (isLost) return
      isLost = true
      this.#gaps++
      client.end().catch(() => {}) // it may be broken
      setTimeout(() => {
        this.#client = undefined
      }, RECONNECT_DELAY_MS).unref()
    }
    client.on('notification', ({ payload = '' }) => {
      this.#countByTenant.set(payload, (this.#countByTenant.get(payload) ?? 0) + 1)
      this.onChange(payload)
    })
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
