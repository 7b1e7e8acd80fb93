import { Button, Group, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { StateTag } from '../ui/state-tag'
import { refetchAccount, secondFactorQuery } from './account-queries'
import { RecoveryCodes } from './recovery-codes'
import { SecondFactorSetup } from './second-factor-setup'

const LOW_CODE_COUNT = 3

function describeRecoveryCodes(count: number): string {
  if (count === 0) return 'No recovery code is left.'
  return count === 1 ? '1 recovery code is left.' : `${count} recovery codes are left.`
}

/** The second factor of the user: codes from an app, and the recovery codes that replace them. */
export function SecondFactorSection() {
  const { data: factor } = useQuery(secondFactorQuery)
  const [codes, setCodes] = useState<string[]>()
  const start = useMutation({
    mutationFn: () => sendWithProof((proof) => fetchData(api.POST('/api/me/totp', { body: proof }))),
  })
  const finish = async (recoveryCodes: string[]) => {
    start.reset()
    setCodes(recoveryCodes)
    await refetchAccount()
  }
  return (
    <PanelSection
      title="Second factor"
      order={2}
      action={factor && <StateTag label={factor.enabled ? 'on' : 'off'} tone={factor.enabled ? 'good' : 'neutral'} />}
    >
      {codes && <RecoveryCodes codes={codes} onKept={() => setCodes(undefined)} />}
      {start.data && <SecondFactorSetup factor={start.data} onConfirmed={finish} onCancel={start.reset} />}
      {start.error && <ProblemMessage m={0} error={start.error} />}
      {factor && !factor.enabled && !start.data && (
        <>
          <Text size="sm" mb="sm">
            With a second factor, a sign-in by password also needs a code from an app on your phone.
          </Text>
          <Button variant="default" loading={start.isPending} onClick={() => start.mutate()}>
            Set up a second factor
          </Button>
        </>
      )}
      {factor?.enabled && !codes && <EnabledFactor recoveryCodes={factor.recoveryCodes} />}
    </PanelSection>
  )
}

function EnabledFactor({ recoveryCodes }: { recoveryCodes: number }) {
  const [isRemoving, setIsRemoving] = useState(false)
  return (
    <>
      <Text size="sm" mb="sm">
        {describeRecoveryCodes(recoveryCodes)}
        {recoveryCodes < LOW_CODE_COUNT && ' To get new ones, turn the second factor off and set it up again.'}
      </Text>
      {isRemoving ? (
        <FactorRemoval onDone={() => setIsRemoving(false)} />
      ) : (
        <Button variant="default" onClick={() => setIsRemoving(true)}>
          Turn off
        </Button>
      )}
    </>
  )
}

function FactorRemoval({ onDone }: { onDone: () => void }) {
  const [code, setCode] = useState('')
  const remove = useMutation({
    mutationFn: () => fetchData(api.DELETE('/api/me/totp', { body: { code } })),
    onSuccess: async () => {
      await refetchAccount()
      showNotice('The second factor is off.')
      onDone()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    remove.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Group align="flex-end" gap="xs">
        <TextInput
          label="Code from your app, or a recovery code"
          autoComplete="one-time-code"
          autoFocus
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Button type="submit" color="red" loading={remove.isPending} disabled={!code}>
          Turn off
        </Button>
        <Button variant="subtle" color="gray" onClick={onDone}>
          Cancel
        </Button>
      </Group>
      {remove.error && <ProblemMessage m={0} error={remove.error} />}
    </form>
  )
}
