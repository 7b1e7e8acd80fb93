import type { Command } from 'commander'
import { config } from '../../config'
import type { Installation } from './installation'
import { localInstallation } from './local'
import { createRemoteInstallation } from './remote'

/** Returns the server that `--url` or ATOLL_URL names, or undefined when the command works on the data here. */
export function findRemoteServer(command: Command) {
  const { url = config.ATOLL_URL, token = config.ATOLL_TOKEN } = command.optsWithGlobals() as Record<string, string>
  if (!url) return
  if (!/^https?:\/\//.test(url)) command.error(`--url must be a URL such as https://example.com, not "${url}".`)
  if (!token) command.error("Provide the server's operator token with --token or ATOLL_TOKEN.")
  return createRemoteInstallation(url, token)
}

/** Returns the installation that a command is for: that of a server, or the one of the data here. */
export const findInstallation = (command: Command): Installation => findRemoteServer(command) ?? localInstallation
