import { autocompletion, type CompletionSource } from '@codemirror/autocomplete'
import { html } from '@codemirror/lang-html'
import { javascript, javascriptLanguage } from '@codemirror/lang-javascript'
import { json } from '@codemirror/lang-json'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { Annotation, EditorSelection, EditorState, type Extension, type Text } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { basicSetup } from 'codemirror'
import { useEffect, useRef } from 'react'
import classes from './code-mirror.module.css'
import { readCspNonce } from './csp-nonce'

/** The languages that the editor knows. */
export type CodeLanguage = 'typescript' | 'tsx' | 'json' | 'html' | 'text'

/** The languages by name. */
export const languages: Record<CodeLanguage, () => Extension> = {
  typescript: () => javascript({ typescript: true }),
  tsx: () => javascript({ typescript: true, jsx: true }),
  json,
  html: () => html(),
  text: () => [],
}

/** The colours of code. */
export const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier], color: 'var(--code-keyword)' },
  { tag: [tags.string, tags.regexp], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: [tags.comment], color: 'var(--text-quiet)' },
  { tag: [tags.typeName, tags.className, tags.tagName], color: 'var(--code-type)' },
])

/** A flaw at a line, which begins at 1. */
export type CodeFlaw = { line: number; message: string }

export type CodeMirrorProps = {
  language: CodeLanguage
  value: string
  onChange?: (value: string) => void
  /** The id of the element that names the editor. */
  labelId: string
  readOnly?: boolean
  /** Whether it fills the height of the window, as where code is all that a screen is about. */
  isTall?: boolean
  flaws?: CodeFlaw[]
  /** Suggests words of the platform, such as `atoll.*`. */
  complete?: CompletionSource
}

/** Marks a change that came from outside, so that `onChange` is not called. */
const externalChange = Annotation.define<boolean>()

/** Returns the position in another text that has the line and column of the cursor. */
function toSamePosition({ doc, selection }: EditorState, other: Text): number {
  const { number, from } = doc.lineAt(selection.main.head)
  const line = other.line(Math.min(number, other.lines))
  return Math.min(line.to, line.from + selection.main.head - from)
}

/** The editor of `CodeEditor`. Tab moves the focus; Escape leaves the suggestions. */
export function CodeMirror(props: CodeMirrorProps) {
  const { language, value, onChange, labelId, readOnly, isTall, flaws, complete } = props
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  /** What was typed since the value was last the same: while somebody types fast, the value comes late. */
  const typed = useRef(new Set<string>())
  const latestOnChange = useRef(onChange)
  latestOnChange.current = onChange
  useEffect(() => {
    const editor = new EditorView({
      parent: host.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          basicSetup,
          languages[language](),
          syntaxHighlighting(colours),
          EditorView.cspNonce.of(readCspNonce()),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-labelledby': labelId, tabindex: '0' }),
          EditorState.readOnly.of(!!readOnly),
          lintGutter(),
          complete ? [autocompletion(), javascriptLanguage.data.of({ autocomplete: complete })] : [],
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((each) => each.annotation(externalChange))) return
            const text = update.state.doc.toString()
            typed.current.add(text)
            latestOnChange.current?.(text)
          }),
        ],
      }),
    })
    view.current = editor
    // Its styles come after the first measurement of its lines.
    requestAnimationFrame(() => editor.requestMeasure())
    return () => editor.destroy()
    // The editor keeps its own text; another value from outside is put into it below.
  }, [language, labelId, readOnly, complete])
  useEffect(() => {
    const editor = view.current
    if (!editor || (typed.current.has(value) && editor.state.doc.toString() !== value)) return
    typed.current.clear()
    if (editor.state.doc.toString() === value) return
    const changes = { from: 0, to: editor.state.doc.length, insert: value }
    const selection = EditorSelection.cursor(toSamePosition(editor.state, editor.state.toText(value)))
    editor.dispatch({ changes, selection, annotations: externalChange.of(true) })
  }, [value])
  useEffect(() => {
    const editor = view.current
    if (!editor) return
    const diagnostics = (flaws ?? []).map(({ line, message }): Diagnostic => {
      const { from, to } = editor.state.doc.line(Math.min(Math.max(1, line), editor.state.doc.lines))
      return { from, to, message, severity: 'error' }
    })
    editor.dispatch(setDiagnostics(editor.state, diagnostics))
    // Another editor has no marks yet.
  }, [flaws, language, labelId, readOnly, complete])
  return <div ref={host} className={`${classes.editor} ${isTall ? classes.tall : ''}`} />
}
