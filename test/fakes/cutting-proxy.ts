import { connect, createServer, type Socket } from 'node:net'

/**
 * Starts a proxy in front of a server that cuts connections: `before` a message with this text reaches the server, or
 * `after` it has, but before its answer is passed on. Each order is carried out once. It can also be slow.
 */
export async function startCuttingProxy(target: { port: number }) {
  const orders: { text: string; when: 'before' | 'after' }[] = []
  const sockets = new Set<Socket>()
  let delayMs = 0
  const server = createServer((caller) => {
    const upstream = connect(target.port, '127.0.0.1')
    let cut = false
    let passing = Promise.resolve()
    for (const socket of [caller, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket
        .on('error', () => {})
        .on('close', () => {
          caller.destroy()
          upstream.destroy()
          sockets.delete(socket)
        })
    }
    caller.on('data', (bytes) => {
      const [order] = orders
      if (order && bytes.includes(order.text)) {
        orders.shift()
        if (order.when === 'before') return void caller.destroy()
        cut = true
      }
      const passAt = performance.now() + delayMs
      // One after the other: a message must not overtake an earlier one when the delay has become shorter.
      passing = passing.then(async () => {
        if (passAt > performance.now()) await Bun.sleep(passAt - performance.now())
        upstream.write(bytes)
      })
    })
    upstream.on('data', (bytes) => {
      if (cut) caller.destroy()
      else caller.write(bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    /** Returns how many orders are left. */
    left: () => orders.length,
    cut: (when: 'before' | 'after', text: string) => void orders.push({ when, text }),
    /** Passes each message on only after this time. */
    slowDown(ms: number) {
      delayMs = ms
    },
    /** Removes all orders. */
    clear: () => void orders.splice(0),
    /** Cuts all connections there are; new ones are passed on. */
    cutAll() {
      for (const socket of sockets) socket.destroy()
    },
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
