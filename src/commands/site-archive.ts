import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import { badRequest } from '../core/problem'

/** The files of a folder that is deployed, and the names that are left out because they begin with a dot. */
export type SiteFolder = { folder: string; files: { path: string; size: number }[]; leftOut: string[] }

/** Returns the files of a folder, sorted. @throws 400 INVALID_INPUT for a folder without index.html, or with links */
export async function readSiteFolder(folder: string): Promise<SiteFolder> {
  const found: SiteFolder = { folder, files: [], leftOut: [] }
  await addFiles(found, '')
  if (!found.files.some(({ path }) => path === 'index.html'))
    badRequest({ path: 'folder', message: `"${folder}" has no index.html. Pass the output folder of your build.` })
  return found
}

async function addFiles(found: SiteFolder, prefix: string) {
  const entries = await readdir(join(found.folder, prefix), { withFileTypes: true }).catch(() =>
    badRequest({ path: 'folder', message: `"${found.folder}" is not a readable folder.` }),
  )
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = `${prefix}${entry.name}`
    if (entry.name.startsWith('.') && path !== '.well-known') found.leftOut.push(path)
    else if (entry.isDirectory()) await addFiles(found, `${path}/`)
    else if (entry.isFile()) found.files.push({ path, size: (await stat(join(found.folder, path))).size })
    else badRequest({ path: 'folder', message: `"${path}" is a symbolic link or a device. Replace it with a file.` })
  }
}

/** Returns a tar archive of the files, which is made while it is read. `onProgress` gets the packed part of it. */
export function packSite({ folder, files }: SiteFolder, onProgress: (fraction: number) => void): ReadableStream {
  const archive = pack()
  const total = files.reduce((sum, { size }) => sum + size, 0)
  const packFiles = async () => {
    let packed = 0
    for (const { path, size } of files) {
      const entry = archive.entry({ name: path, size })
      const content = createReadStream(join(folder, path))
      content.on('data', (chunk) => {
        packed += chunk.length
        onProgress(packed / Math.max(1, total))
      })
      await pipeline(content, entry as unknown as NodeJS.WritableStream)
    }
    archive.finalize()
  }
  packFiles().catch((error) => archive.destroy(error))
  const chunks = archive[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
    },
    { highWaterMark: 0 },
  )
}
