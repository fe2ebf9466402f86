"""Command lines for bash: those that a rule may take for harmless, and every way past it that is known."""

from __future__ import annotations

from fastrpc.guard.shell import lexer


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


NOT_UNDERSTOOD = lines(r"""
ls $HOME
ls ${HOME}
ls ${x:=y}
ls "$HOME"
ls "${HOME}"
ls $(rm x)
ls "$(rm x)"
ls `rm x`
ls "`rm x`"
echo $((1+1))
echo "$((a[$(rm x)]))"
echo $[1+1]
cat <(rm x)
cat >(rm x)
cat < x
cat << EOF
cat <<< x
cat <<'EOF'
echo x > f
echo x >> f
echo x >| f
echo x &> f
echo x &>> f
echo x >& f
echo x 2> f
echo x 3>/dev/null
echo x >&2
echo x <> f
echo x 2>&1f
echo x 2>&1 1>f
echo x >/dev/null/../../f
echo x >/dev/nullx
echo x > /dev/null'x'
echo x >/dev/null$y
echo x >"/dev/null"
echo x>/dev/null
echo x {fd}>/dev/null
>/dev/null
>/dev/null ls
ls &
ls & rm x
ls && rm x &
ls |& cat
PATH=. ls
PATH=.
GIT_PAGER=x git log
GIT_EXTERNAL_DIFF=./x git diff
LD_PRELOAD=./x.so ls
x+=1 ls
a[0]=1 ls
a=(1 2)
"x"=1 ls
(ls)
{ ls; }
{ls,}
! ls
time ls
coproc ls
if true; then ls; fi
while true; do ls; done
for x in a; do ls; done
select x in a; do ls; done
case x in x) ls;; esac
until ls; do ls; done
function f { ls; }
ls() { rm x; }; ls
[[ -f x ]]
((x=1))
ls;;
ls ;; rm
; ls
| ls
&& ls
ls |
ls &&
ls ||
ls | | cat
ls 'x
ls "x
ls x\
ls ~
ls ~root/.ssh
ls a=~
ls "a"=~
ls a:~
ls {a,b}
ls {-la,x}
sort {-o,f} x
ls a{b
ls HEAD@{1}
ls *
ls *.py
sort *
find *
find . -name *.py
ls ?
ls [a]
ls ""*
ls -*
sort -o* x
l?
/bin/l[s]
ls !(x)
ls @(x|y)
ls +(x)
ls $'\x2d\x6f'
ls $"x"
ls "a$b"
ls "a$(x)"
ls a$
echo "${x@P}"
'' x
"" x
%1
%ls x
ls; %
'%1'
# nothing but a comment
""")
KNOWN_TO_ONE_READING = lines(r"""
ls > /dev/null x
a%b
export PATH=.
declare x=1
local x
readonly x=1
unset PATH
""")
NOT_HARMLESS = lines(r"""
rm x
rm -rf /
mv a b
cp a b
touch x
ln -s a b
mkdir x
chmod +x f
dd if=a of=b
tee x
truncate -s 0 x
sh x
bash -c ls
bash --version -c ls
bash x
sudo ls
doas ls
env
env ls
env -S ls
exec ls
eval ls
command ls
command -p ls
command -pv ls
command -v -p ls
builtin ls
source x
. x
trap x EXIT
alias ls=x
alias
enable -f x y
hash -p ./x ls
set -x
let x=1
shopt -s expand_aliases
read x
mapfile x
nohup ls
nice ls
timeout 1 ls
stdbuf -o0 ls
xargs ls
xargs
parallel ls
watch ls
script x
less x
more x
man ls
vi x
ed x
awk 1 x
perl -e 1
python x
python -c 1
python -m x
python --version x
python -V -c 1
python3
node x
node -v
node --version
node -e 1
ruby --version
cargo --version
go version
npm --version
make
make -n
make --version x
gcc x.c
ssh x
curl x
wget x
nc x 1
kill 1
sleep 1
./ls
/bin/ls
bin/ls
../ls
LS
ls; rm x
ls && rm x
ls || rm x
ls | rm x
ls | xargs rm
ls | sh
find . | xargs cat
cat x | tee y
rm x # ls
'rm' x
r\m x
"rm" x
r''m x
find . -delete
find . -exec rm {} +
find . -exec rm '{}' \;
find . -exec ls \;
find . -execdir ls \;
find . -ok ls \;
find . -okdir ls \;
find . -fprint x
find . -fprint0 x
find . -fprintf x y
find . -fls x
find . '-delete'
find . "-"delete
find . \-delete
find . -name x -o -delete
find . \( -name x -delete \)
find . -name -delete
find . -type f -- -delete
find . -files0-from x
find . -newest
find -D exec .
sort -o x y
sort -ox y
sort -no x y
sort y -o x
sort -- y -o x
sort --output x
sort --output=x
sort --outp=x y
sort --o=x y
sort --compress-program=sh x
sort --compress-prog=sh x
sort -T /tmp x
sort --temporary-directory=x y
sort --files0-from=x
sort -k 1 -o x
sort -t -o x
uniq a b
uniq -c a b
uniq - b
uniq a src/*
uniq src/*
uniq -f 1 a
uniq --skip-fields 1 a
tree -o x
tree -ao x
tree -R -L 1 -H .
tree -L -o x
tree -Lo 1 x
tree -Io x y
tree --output x
rg --pre sh x
rg --pre=sh x
rg --pr=sh x
rg --hostname-bin sh x
rg --hostname-bin=sh x
rg -z x
rg -nz x
rg --search-zip x
grep --unknown x
file -C -m x
file -bC x
file --compile x
file -p x
file -m x y
file -z x
file -f x
diff -l a b
diff -ul a b
diff --paginate a b
diff --pag a b
date -s x
date --set=x
date --se=x
date -us x
date 1010
date 101012002026.00
date -d tomorrow
date src/*
hostname x
hostname -F x
hostname -b x
printf -v x y
printf -v PATH x
printf '%n' PATH
printf 'xxx%n' PATH; ls
printf '%5n' x
printf '%-n' x
printf '%hn' x
printf '%ln' x
printf '%%%n' x
printf '%*n' 1 x
printf '%b' x
printf '%(%F)T'
printf src/* x
printf
printf -- '%n' x
echo x | tr a b > y
sed -i s/a/b/ x
sed s/a/b/ x
sed -n 'w x' y
sed -n '1w x' y
sed -n 1e x
sed -n 1p -i x
sed -n 1p --in-place x
sed -n -e 1p x
sed -ni 1p x
sed -n '1p;w x' y
sed --expression=1p x
sed -n p x
sed -n
tail -f x
tail -F x
tail --follow x
tail -nf x -f
cd x && git status
cd x; git log
git status; cd x
cd x && python --version
cd a b
cd src/*
pushd x
xxd a b
xxd -r a
jq -f x y
jq --from-file x y
jq -L x . y
jq -L. . y
cat --unknown x
cat --numbe x
ls --colo
wc --files0-from=x
nl --unknown x
env -i git log
git
git x
git st
git add .
git commit -m x
git checkout x
git switch x
git restore x
git reset
git clean -fd
git push
git pull
git fetch
git clone x
git stash
git stash list
git config x y
git config --list
git apply x
git am x
git rebase x
git gc
git worktree add x
git submodule update
git bisect run x
git filter-branch x
git difftool
git mergetool
git help log
git log --help
git -c core.pager=x log
git -c core.fsmonitor=./x status
git -ccore.pager=x log
git --config-env=core.pager=X log
git -C x status
git -p log
git --paginate log
git --exec-path=. status
git --exec-path status
git --git-dir=x status
git --git-dir x status
git --work-tree=x status
git --bare status
git --no-pager -c x=y log
git --no-pager
git log --output=x
git log --output x
git log --outp=x
git log --ext-diff -p
git log --textconv
git log --show-signature
git log --format=%G?
git log --format='%h %GS'
git log --format='%+G?'
git log --format='% GK'
git log '--pretty=format:%G?'
git log -- -x
git log -- --output=x
git log --end-of-options x
git diff --output=x
git diff --ext-diff
git diff --no-index --output=x a b
git diff --outpu x
git show --output=x
git show --textconv x
git cat-file --textconv x
git cat-file --filters x
git cat-file --batch
git grep -O x
git grep -Oless x
git grep -nO x
git grep --open-files-in-pager x
git grep --open-files-in-pager=sh x
git grep --open x
git grep -f x
git blame --contents x y
git blame --output=x y
git branch x
git branch -d x
git branch -D x
git branch --delete x
git branch -m x y
git branch -f x
git branch -u x
git branch -v x
git branch -l x
git branch -a x
git branch --edit-description
git branch --unset-upstream
git branch --merged x
git branch --format --list x
git branch -a --list x
git branch --list x -D
git branch --list --delete x
git branch --list x --edit-description
git branch --lis x
git branch --list '--format=%(*signature:grade)'
git branch src/*
git tag x
git tag -a x
git tag -d x
git tag -f x
git tag -s x
git tag -v x
git tag -n x
git tag --list x -d
git tag --format --list x
git tag --sort -l x
git tag -n --list x
git remote add x y
git remote rm x
git remote show x
git remote update
git remote -v update
git remote prune x
git rev-parse --parseopt
git rev-parse --output
git ls-remote x
git describe --broken
git status --unknown
git status -x
git shortlog --output=x
git merge-base --fork-point x
""")
HARMLESS = lines(r"""
ls
ls -la
ls -la --color=never src
ls ./*.py
ls src/*.py tests/test_?.py
ls a b c
ls -- x
ls 'a b' "c d" e\ f
ls ''
l\s
"ls" x
pwd
pwd -P
cat x y
cat -n x
cat -
cat x | head -20
head -n 5 x
head -n -5 x
head -5 x
tail -20 x
tail -n +5 x
wc -l src/a.py
grep -rn foo src | head
grep -rn "foo bar" src --include='*.py'
grep -E 'a|b' x
grep "end$" x
grep '$HOME' x
grep "\$HOME" x
grep 'über' x
grep -A5 -B 5 x y
grep -c x y || true
grep -v '^#' x | sort | uniq -c | sort -rn
rg -n foo src
rg --files
rg -tpy 'def \w+' src
find . -name '*.py' -type f
find . -type f -mtime -7 -size +10k
find src tests -maxdepth 2 \( -name a -o -name b \) -print
find . ! -name x
find . -not -path './.git/*'
find . -perm -4000
git status
git status -s
git status --short --branch
git --no-pager log --oneline -5
git --version
git log
git log --oneline -n 5 -- src/a.py
git log -p -S'foo' HEAD~3..HEAD
git log --format='%h %an %s' --since=yesterday
git log --graph --all --decorate
git diff
git diff --stat HEAD~1
git diff --cached -- src
git show HEAD:src/a.py
git show --stat HEAD^
git branch
git branch -a
git branch -vv
git branch --list 'a*'
git branch --show-current
git tag
git tag -l 'v*'
git remote -v
git rev-parse --show-toplevel
git rev-parse --abbrev-ref HEAD
git ls-files
git ls-files -m 'src/*'
git ls-tree -r HEAD
git blame -L 10,20 x
git grep -n foo
git describe --tags
git cat-file -p HEAD
git merge-base a b
git shortlog -sn HEAD
echo
echo hello
echo -n -e '--x'
printf '%s\n' a b
printf '%5.2f %d%%\n' 1 2
printf '%s\n' --x
date
date -u +%FT%TZ
date --date=yesterday '+%A %d'
stat -c %s x
file -b x
which -a python
command -v git
type -a ls
du -sh .
du -d1
df -h
sort -k2,2n -t, x
sort -rnu x
uniq
uniq -c x
cut -d: -f1 x
tr a-z A-Z
diff -u a b
diff -r --brief a b
cmp a b
comm -12 a b
basename a/b .c
dirname a/b
realpath x
readlink -f x
true
false
tree -L 2 -I node_modules
python --version
python3 -V
sed -n 10,20p x
sed -n '$p' x y
sed -n '10,$p' src/*.py
jq -r .name package.json
jq '.a[0] | keys' x
sha256sum x
nl -ba x
whoami
uname -a
id -u
ps aux
cd src && ls
cd src; grep -rn x .
ls; pwd
ls && pwd || true
ls | wc -l; pwd
ls > /dev/null
ls >/dev/null 2>&1
ls 2>/dev/null | head
ls 2>&1 | grep x
ls 1>/dev/null
ls # what is there; rm x
""")


MULTILINE = [
    "ls\npwd",
    "ls\n\n# a comment; rm x\n  pwd # another\n",
    "ls |\n wc",
    "ls &&\npwd",
    "\tls\t-a\n",
    "grep 'a\nb' x",
]
BEHIND_A_NEWLINE = [
    "sed -n '1p\nw x' y",
    "ls\nrm x",
    "ls; \nrm x",
    "ls # x\nrm x",
    "# x\n\nrm x\n",
    "ls |\nrm x",
    "ls '\n'\nrm x",
]
ODD = [
    *("", " ", "\n", "\n\n# x\n", "ls\n&& pwd", "ls\n| wc", "ls\n;", "if true\nthen ls\nfi", "ls 'x\nrm x"),
    *("cat <<E\nx\nE\n", "cat <<E\n$(rm x)\nE", "ls \\\nrm x", "l\\\ns", 'ls "a\\\nb"'),
    *(
        "ls\0",
        "ls\r",
        "ls\r\nrm x",
        "ls \x1b[2K",
        "ls \x7f",
        "ls\x0brm",
        "ls\x0cx",
        "ls '\ud800'",
        "ls '\ufeff'",
    ),
    *("ls\u00a0-la", "ls\u2003x", "ls 'a\u00a0b'", "ls '\u202e'", "ls '\u200b'", "ls\u2028rm x"),
    *("ls ü", "l\u0455", "ls 'ü' \\a"),
    "ls " + "a" * lexer.LONGEST_LINE,
    ";".join(["ls"] * (lexer.MOST_COMMANDS + 1)),
]
"""Newlines where they mean something else, characters that cannot be seen or look like others, too much."""
