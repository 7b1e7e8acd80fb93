import { Button, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, fetchData } from '../../api/client'
import { findFieldError } from '../../api/problem'
import { queryClient } from '../../api/queries'
import { showNotice } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { Screen } from '../../ui/screen'
import classes from '../workbench.module.css'
import { useCodeDraft } from './code-draft'
import { LambdaCode } from './lambda-code'
import { LAMBDA_TEMPLATE } from './lambda-template'
import { saveByKey } from './save-shortcut'

/** A form for a new lambda, which begins with code that runs. */
export function NewLambda() {
  const navigate = useNavigate()
  const draft = useCodeDraft('new', { code: LAMBDA_TEMPLATE, version: 0 })
  const [name, setName] = useState('')
  const create = useMutation({
    mutationFn: () => fetchData(api.POST('/api/lambdas', { body: { name, code: draft.code } })),
    onSuccess: async ({ _id }) => {
      draft.discard()
      showNotice('Created.')
      await queryClient.invalidateQueries({ queryKey: ['lambdas'] })
      await navigate({ to: '/automation/lambdas/$id', params: { id: _id } })
    },
  })
  const change = (code: string) => {
    if (create.isError) create.reset()
    draft.change(code)
  }
  const isShownAtInput = ['name', 'code'].some((key) => findFieldError(create.error, key))
  return (
    <Screen
      title="New lambda"
      request={{ method: 'POST', path: '/api/lambdas', body: { name, code: draft.code } }}
      actions={
        <Button onClick={() => create.mutate()} loading={create.isPending}>
          Create lambda
        </Button>
      }
    >
      <div className={classes.main} onKeyDownCapture={saveByKey(() => create.isPending || create.mutate())}>
        {create.error && !isShownAtInput && <ProblemMessage error={create.error} />}
        <Stack gap="sm">
          <TextInput
            label="Name"
            required
            autoFocus
            maw={400}
            value={name}
            error={findFieldError(create.error, 'name')}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <LambdaCode code={draft.code} error={create.error} onChange={change} />
        </Stack>
      </div>
    </Screen>
  )
}
