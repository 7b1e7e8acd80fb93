import { api, fetchData } from '../api/client'
import type { StoredFile } from '../api/files'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import { confirmAction } from '../ui/confirmation'

export const refetchFiles = () => queryClient.invalidateQueries({ queryKey: ['files'] })

type FileUse = { blueprint: string; field: string; identifier: string }

const removeFile = (id: string, force?: 'true') =>
  fetchData(api.DELETE('/api/files/{id}', { params: { path: { id }, query: { force } } }))

/** Deletes a file after a question, and after another one when entities name it. Returns whether it is deleted. */
export async function deleteFile({ _id, name }: StoredFile): Promise<boolean> {
  const text = 'It cannot be brought back.'
  if (!(await confirmAction({ title: `Delete the file “${name}”?`, text, action: 'Delete file' }))) return false
  try {
    await removeFile(_id)
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== 'FILE_IN_USE') throw error
    const places = (error.details as FileUse[]).map((use) => `${use.blueprint} ${use.identifier} (${use.field})`)
    const question = {
      title: `Entities name the file “${name}”`,
      text: `${places.length ? `${places.join(', ')}. ` : ''}Their values stay, but lead nowhere.`,
      action: 'Delete it nevertheless',
    }
    if (!(await confirmAction(question))) return false
    await removeFile(_id, 'true')
  }
  await refetchFiles()
  return true
}
