import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { createAiHooks } from './ai-hooks'
import { createEntityHooks } from './entity-hooks'
import type { Client, Kinds, UploadInit } from './index'
import { createPaymentHooks } from './payment-hooks'
import { createSessionHooks } from './session-hooks'
import { createWorkspaceHooks } from './workspace-hooks'

/**
 * Hooks for a client, over TanStack Query. `scope` begins all keys of queries: give each client its own where a page has
 * several.
 * @example
 * const { useList, useCreate, useMe } = createHooks(client)
 */
export const createHooks = <B extends Kinds<B>>(client: Client<B>, scope = 'atoll') => ({
  ...createEntityHooks(client, scope),
  ...createSessionHooks(client, scope),
  ...createWorkspaceHooks(client, scope),
  ...createPaymentHooks(client, scope),
  ...createAiHooks(client, scope),

  /**
   * Uploads files, with the progress from 0 to 1.
   * @example
   * const { mutateAsync: upload, progress } = useUpload()
   * const send = async (picture: Blob) => (await upload(picture)).url
   */
  useUpload() {
    const [progress, setProgress] = useState(0)
    const onProgress: UploadInit['onProgress'] = ({ sent, total }) => setProgress(total ? sent / total : 1)
    const mutation = useMutation({
      mutationFn: (content: Parameters<Client<B>['files']['upload']>[0]) =>
        client.files.upload(content, { onProgress }),
      onMutate: () => setProgress(0),
    })
    return { ...mutation, progress }
  },
})
