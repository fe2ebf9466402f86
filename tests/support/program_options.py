"""Command lines of programs that are often allowed, which run another one by an option, a file or a word."""

from __future__ import annotations

ATTACKS = r"""
make --eval='$(shell touch M)'
make --eval=x:=\$\(shell\ touch\ M\)
make -f evil.mk
make -C /tmp/evil
make SHELL=/tmp/evil
make CC=/tmp/evil test
make test SHELL=/tmp/evil
make -I /tmp/evil test
make MAKEFLAGS=--eval=x test
make && make --eval='$(shell touch M)'
make test; make -f /tmp/evil
pytest -p evil
pytest -c /tmp/evil.ini
pytest /tmp/evil_test.py
pytest --rootdir=/tmp/evil -p evil
pytest -o python_files=evil.py
pytest --confcutdir /tmp --pyargs evil
pytest -q --override-ini=addopts=-pevil
pytest -q && pytest -p evil
git -c core.pager='touch M' log
git -c core.pager=/tmp/evil log
git -c alias.x='!touch M' x
git -c core.fsmonitor=/tmp/evil status
git -c diff.external=/tmp/evil diff
git -c core.sshCommand=/tmp/evil fetch
git -C /tmp/evil status
git --exec-path=/tmp/evil status
git --git-dir=/tmp/evil status
git --paginate log
git -p log
git log --ext-diff
git diff --ext-diff
git diff --textconv
git log --output=M
git diff --output M
git grep -O/tmp/evil x
git grep --open-files-in-pager=/tmp/evil x
git log --format=%G?
git show --show-signature
git bisect run /tmp/evil
git rebase -x /tmp/evil HEAD
git submodule foreach /tmp/evil
git clone --upload-pack=/tmp/evil x y
git ls-remote --upload-pack=/tmp/evil x
git ls-remote ext::/tmp/evil
git archive --remote=x --exec=/tmp/evil HEAD
git difftool -x /tmp/evil
git filter-branch --tree-filter /tmp/evil
git config core.pager /tmp/evil
git branch evil
git tag evil
git help -w log
cd /tmp/evil && git status
cd /tmp/evil && make --version
find . -exec touch M {} +
find . -execdir touch M ;
find . -ok touch M ;
find . -delete
find . -fprint M
find . -fls M
find . -fprintf M x
find -files0-from M
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=/tmp/evil x
tar -xf x --to-command=/tmp/evil
tar -cf x --use-compress-program=/tmp/evil y
tar -I /tmp/evil -cf x y
tar --rsh-command=/tmp/evil -cf h:x y
tar -cf x -F /tmp/evil -L 1 y
rsync -e /tmp/evil x h:y
ssh -o ProxyCommand=/tmp/evil h
ssh -oLocalCommand=/tmp/evil -oPermitLocalCommand=yes h
ssh h touch M
scp -S /tmp/evil x h:y
sftp -S /tmp/evil h
env touch M
env -S 'touch M'
xargs touch M
xargs -a x touch
parallel touch
awk 'BEGIN{system("touch M")}'
gawk -f evil.awk
gawk -l evil
awk 'BEGIN{print > "M"}'
sed '1e touch M' x
sed -n 1e x
sed 's/x/touch M/e' x
sed -n 'w M' x
sed -i s/x/y/ z
sed -n -e 1p -e '1e touch M' x
sed -n 10,20p -i x
sed -n -f evil.sed x
vim -c '!touch M'
vim -es -c ':call system("touch M")'
vi +'!touch M'
ed x
less +'!touch M' x
more x
man -P /tmp/evil ls
man -H/tmp/evil ls
python -c 'import os'
python -m evil
python evil.py
python3 -V -c 'import os'
perl -e 'system "touch M"'
ruby -e 'system "touch M"'
node -e 1
node --require ./evil.js
php -r 1
lua -e 1
bash -c 'touch M'
bash --version -c 'touch M'
sh evil.sh
busybox sh evil.sh
dash -c 'touch M'
timeout 5 touch M
nohup touch M
nice touch M
time touch M
stdbuf -o0 touch M
setsid touch M
watch touch M
strace touch M
sudo touch M
su -c 'touch M'
doas touch M
chroot / touch M
unshare touch M
script -c 'touch M' x
flock x touch M
exec touch M
eval touch M
command touch M
builtin eval x
trap 'touch M' EXIT
. ./evil
source ./evil
alias ls=/tmp/evil
hash -p /tmp/evil ls
enable -f ./evil x
printf -v PATH %s /tmp/evil
printf %n PATH
export PATH=/tmp/evil
rg --pre=/tmp/evil x
rg --pre /tmp/evil x
rg --hostname-bin=/tmp/evil x
rg -z x
rg --search-zip x
grep --include=x -r --devices=read x /dev/zero
sort --compress-program=/tmp/evil x
sort -o M x
sort --output=M x
sort -T /tmp x --files0-from=y
uniq x M
tee M
dd of=M
cp x M
install x M
ln -s x M
split --filter='touch M' x
csplit x 1
zip x y -TT 'touch M'
unzip -p x
7z x y
curl -o M https://x
curl -K evil https://x
wget -O M https://x
wget --use-askpass=/tmp/evil https://x
npm run x
npm --version
npx evil
cargo --config evil build
go run evil.go
go test -exec=/tmp/evil
go vet -vettool=/tmp/evil
gcc -wrapper /tmp/evil x.c
gcc -B/tmp/evil x.c
gcc --version -wrapper /tmp/evil
cmake -P evil.cmake
docker run evil
kubectl exec x -- touch M
tree -o M
file -C -m evil
file -m evil x
diff --to-file=x -l y
diff -l x y
date -s 12:00
date 010100002030
hostname evil
jq -f evil.jq
jq -n 'repeat(1)'
jq -n 'def f: f; f'
jq -L /tmp/evil 'import "x" as x; 1'
jq -n '[while(true; .)]'
tail -f x
tail -F x
tail +f x
tail +5f x
tail --follow x
tail --retry --follow=name x
tail -5f x
tail -n 5 -f x
tail --pid=1 -f x
tail -qf x
cat /dev/zero
cat //dev/./zero
cat /tmp/../dev/urandom
wc /dev/zero
head -c 5 /dev/tty
cat /de[v]/zero
cat /d?v/zero
cat /*/zero
wc -l /de*/zer*
cat dev/zero
cat ./dev/zero
cat d*/zero
cat ../../../dev/zero
cat x/../dev/tty
cd /dev; cat zero
cd /dev && cat zero
cd / ; cat dev/zero
cd /; cd dev; cat zero
cd ../../dev; head -c 5 tty
cd /proc/self/root; cat dev/zero
cat /proc/self/root/dev/zero
cat /proc/self/fd/0
cat /proc/1/mem
cat /proc/kms[g]
cat /sys/kernel/debug/tracing/trace_pipe
cat /sys/kernel/tracing/trace_pipe
grep -r x /proc
grep -r x /sys
grep -r x /
rg x /
grep -nf/dev/zero x
od -A /dev/zero
grep -f/dev/zero x
grep --file=/dev/zero x
cat /proc/kmsg
ls --color=always; touch M
ls && touch M
ls | tee M
ls > M
ls $(touch M)
X=1 touch M
""".strip().split("\n")
"""Each runs a program, writes something, or never ends; M is a marker."""
