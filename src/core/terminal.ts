import { fstatSync, statSync } from 'node:fs'

/** Tells whether a file descriptor is a terminal, without `node:tty`, which loads streams and sockets. */
export const isTerminal = (fd: number) => mayBeTerminal(fd) && process.getBuiltinModule('node:tty').isatty(fd)

function mayBeTerminal(fd: number): boolean {
  try {
    const file = fstatSync(fd)
    return file.isCharacterDevice() && (process.platform === 'win32' || file.rdev !== statSync('/dev/null').rdev)
  } catch {
    return false // it is closed
  }
}
