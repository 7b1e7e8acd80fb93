import { createServer, type Socket } from 'node:net'

const message = (type: string, body: Buffer) => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}
const SIGNED_IN = message('R', Buffer.alloc(4))
const READY = message('Z', Buffer.from('I'))
const toErrorMessage = (code: string, text: string) =>
  message('E', Buffer.from(`SERROR\0C${code}\0M${text}\0\0`, 'latin1'))

/** Starts a server that speaks PostgreSQL's protocol, lets everybody in, and refuses every statement. */
export async function startRefusingServer() {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.once('data', () => {
      socket.write(Buffer.concat([SIGNED_IN, READY]))
      socket.on('data', (bytes) => {
        if (bytes.toString('latin1', 0, 1) === 'X') socket.end()
        else socket.write(Buffer.concat([toErrorMessage('25006', 'This is read only.'), READY]))
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `postgres://user@127.0.0.1:${port}/data`,
    /** Returns how many connections were made, and how many of them are open. */
    count: () => ({ made: connections, open: sockets.size }),
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
