import { version as bunVersion } from 'bun/package.json'

export type Platform = {
  /** As it is called in the names of files. */
  name: string
  /** What `bun build --target` calls it. */
  target: string
  /** The npm package that brings Bun's executable of this platform. */
  runtime: string
}

const platform = (name: string, target = name.replace('arm64', 'aarch64')): Platform => ({
  name,
  target: `bun-${target}`,
  runtime: `@oven/bun-${target}`,
})

/** All platforms of a release. Bun's x64 runtime needs no more than SSE4.2, so there is no variant for older CPUs. */
export const PLATFORMS: readonly Platform[] = [
  platform('linux-x64'),
  platform('linux-arm64'),
  platform('linux-x64-musl'),
  platform('linux-arm64-musl'),
  platform('darwin-x64'),
  platform('darwin-arm64'),
  platform('windows-x64'),
]

/** The version of Bun that runs this, and that is in every binary. */
export const BUN_VERSION: string = bunVersion

export const isWindows = ({ name }: Platform) => name.startsWith('windows')
export const binaryName = (platform: Platform) => (isWindows(platform) ? 'atoll.exe' : 'atoll')
