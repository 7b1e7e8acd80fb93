import { SegmentedControl } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { ProblemMessage } from '../ui/problem-message'
import classes from './mail-preview.module.css'

/** How the HTML of a mail looks. It cannot run scripts, and belongs to no origin. */
export const MailFrame = ({ html }: { html: string }) => (
  <iframe className={classes.frame} title="The mail" sandbox="" srcDoc={html} />
)

type MailPreviewProps = { name: string; parts: Record<string, string> }

/** A mail with sample values, as the parts that are typed would make it. */
export function MailPreview({ name, parts }: MailPreviewProps) {
  const [form, setForm] = useState('HTML')
  const { data, error } = useQuery({
    queryKey: ['mail-preview', name, parts],
    queryFn: () =>
      fetchData(api.POST('/api/mails/templates/{name}/preview', { params: { path: { name } }, body: parts })),
    placeholderData: keepPreviousData,
  })
  return (
    <section className={classes.preview} aria-label="Preview">
      <header className={classes.header}>
        <span className={classes.subject}>{data?.subject}</span>
        <SegmentedControl size="xs" data={['HTML', 'Text']} value={form} onChange={setForm} aria-label="Form" />
      </header>
      {error && <ProblemMessage error={error} />}
      {data && (form === 'HTML' ? <MailFrame html={data.html} /> : <pre className={classes.text}>{data.text}</pre>)}
    </section>
  )
}
