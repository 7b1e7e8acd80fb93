import { formatBytes as formatBytesOfLocale } from '../../core/byte-size'

/** Returns a size such as 1.2 MiB, with digits as the browser writes them. */
export const formatBytes = (bytes: number): string => formatBytesOfLocale(bytes, undefined)
