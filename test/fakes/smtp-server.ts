import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** A mail as the server received it. */
export type ReceivedMail = { from: string; to: string[]; headers: string; text: string; html: string; tls: boolean }

type RecipientRefusal = { code: number; times: number }

/**
 * Starts a real SMTP server on a free port. It rejects the recipients given to `refuse`, and keeps the mails that it
 * accepts.
 */
export async function startSmtpServer(options: SMTPServerOptions = {}) {
  const letters: ReceivedMail[] = []
  const refusals = new Map<string, RecipientRefusal>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.key ? [] : ['STARTTLS'],
    ...options,
    onRcptTo({ address }, _, done) {
      const refusal = refusals.get(address)
      if (!refusal?.times) return done()
      refusal.times--
      done(Object.assign(new Error('No.'), { responseCode: refusal.code }))
    },
    onData(stream, { envelope, secure }, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk) => chunks.push(chunk))
      stream.on('end', () => {
        const from = envelope.mailFrom ? envelope.mailFrom.address : ''
        letters.push({ from, to: envelope.rcptTo.map(({ address }) => address), tls: secure, ...parseMail(chunks) })
        done()
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as { port: number }
  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    letters,
    refuse: (address: string, code: number, times = Number.POSITIVE_INFINITY) => refusals.set(address, { code, times }),
    to: (address: string) => letters.filter(({ to }) => to.includes(address)),
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

function parseMail(chunks: Buffer[]) {
  const raw = Buffer.concat(chunks).toString()
  const end = raw.indexOf('\r\n\r\n')
  const headers = raw.slice(0, end).replace(/\r\n[ \t]+/g, ' ')
  const parts = raw.slice(end).split(/\r\n--[^\r\n]+/)
  const part = (type: string) => decodePart(parts.find((one) => one.includes(`Content-Type: ${type}`)) ?? '')
  return { headers, text: part('text/plain'), html: part('text/html') }
}

function decodePart(part: string) {
  const body = part.slice(part.indexOf('\r\n\r\n') + 4).replaceAll('\r\n', '\n')
  if (/encoding: base64/i.test(part)) return Buffer.from(body, 'base64').toString()
  if (!/quoted-printable/i.test(part)) return body
  const bytes = body
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
