import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'

/** Opens a TLS connection to a port of this machine and asks for a name; any certificate is accepted. */
export async function connectTls(port: number, servername?: string): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const options = { port, host: '127.0.0.1', rejectUnauthorized: false, ...(servername && { servername }) }
  const socket: TLSSocket = connect(options, () => resolve(socket))
  socket.on('error', reject)
  return promise
}

/** Returns the certificate that a server offers for a name. A connection can be reset while certificates change. */
export async function fetchCertificate(port: number, servername?: string): Promise<PeerCertificate> {
  const socket = await connectTls(port, servername).catch(() => connectTls(port, servername))
  const certificate = socket.getPeerCertificate()
  socket.destroy()
  return certificate
}
