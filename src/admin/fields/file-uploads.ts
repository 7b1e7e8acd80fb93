import { useState } from 'react'
import { formatBytes as formatBytesOfLocale, parseSize } from '../../core/byte-size'
import { uploadFile } from '../api/files'
import { newId } from '../api/new-id'
import type { Field } from '../api/schema'

export type RunningUpload = { id: string; name: string; part: number }

/** Returns why a file cannot be a value of a field, as far as the page can know it, or undefined. */
function findFileFlaw({ accept, maxSize }: Field, { name, type, size }: File): string | undefined {
  const isAccepted = (one: string) => (one.endsWith('/*') ? type.startsWith(one.slice(0, -1)) : type === one)
  if (accept && type && !accept.some(isAccepted)) return `“${name}” is ${type}, but only ${accept.join(', ')} is taken.`
  const limit = maxSize === undefined ? undefined : parseSize(`${maxSize}`)
  if (limit !== undefined && size > limit) return `“${name}” is larger than ${formatBytesOfLocale(limit, undefined)}.`
}

/** Uploads files for a field. Each address is handed on when its file is complete. */
export function useFileUploads(field: Field, onUploaded: (urls: string[]) => void) {
  const [running, setRunning] = useState<RunningUpload[]>([])
  const [flaw, setFlaw] = useState<string>()
  const uploadOne = async (file: File): Promise<string[]> => {
    const id = newId()
    setRunning((all) => [...all, { id, name: file.name, part: 0 }])
    const setPart = (part: number) => setRunning((all) => all.map((one) => (one.id === id ? { ...one, part } : one)))
    try {
      const { url } = await uploadFile(file, setPart)
      return [url]
    } catch (error) {
      setFlaw(`“${file.name}” was not uploaded: ${(error as Error).message}`)
      return []
    } finally {
      setRunning((all) => all.filter((one) => one.id !== id))
    }
  }
  const upload = async (files: File[]) => {
    const flaws = files.flatMap((file) => findFileFlaw(field, file) ?? [])
    setFlaw(flaws[0])
    if (flaws.length) return
    const urls: string[] = []
    for (const file of files) urls.push(...(await uploadOne(file)))
    if (urls.length) onUploaded(urls)
  }
  return { running, flaw, upload }
}
