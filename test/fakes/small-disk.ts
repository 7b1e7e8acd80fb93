/** Mounts a small disk at a folder, for `using`; returns undefined where none can be mounted. */
export function mountDisk(folder: string, size: string) {
  if (process.platform !== 'linux') return
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  if (!mounted.success) return
  return { [Symbol.dispose]: () => void Bun.spawnSync(['umount', '-l', folder]) }
}
