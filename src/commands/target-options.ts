import type { Command } from 'commander'
import { config } from '../config'

/** The tenant that a command is for: one of a server, with an API token, or one of the data here. */
export type TargetOptions = { url: string; token: string; tenant?: string } | { url?: undefined; tenant: string }

/** Returns the tenant that the options or settings of a command name. @throws CommanderError when one is missing */
export function readTargetOptions(command: Command): TargetOptions {
  const options = command.optsWithGlobals() as Record<string, string | undefined>
  const { url = config.ATOLL_URL, token = config.ATOLL_TOKEN, tenant } = options
  if (!url) return { tenant: tenant ?? command.error('Specify the tenant with --tenant.') }
  if (!/^https?:\/\//.test(url)) command.error(`--url must be a URL such as https://example.com, not "${url}".`)
  if (!token) command.error('Provide an API token of the tenant with --token or ATOLL_TOKEN.')
  return { url, token, ...(tenant && { tenant }) }
}
