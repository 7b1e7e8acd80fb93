/** The version of the server that this client belongs to. */
export const VERSION = '0.1.0'

export type Versions = { client: string; server: string }

/** Versions that differ only in their patch number are compatible. */
const toLine = (version: string) => version.split('.').slice(0, 2).join('.')

/** Returns a function that compares the version of the server with this one, and reports a difference once. */
export function createVersionCheck(report: (versions: Versions) => void = warnOfVersion) {
  let isReported = false
  return (server: string | null) => {
    if (!server || isReported || toLine(server) === toLine(VERSION)) return
    isReported = true
    report({ client: VERSION, server })
  }
}

const warnOfVersion = ({ client, server }: Versions) =>
  console.warn(
    `The server runs Atoll ${server}, and this client is of ${client}. Generate or install the client again.`,
  )
